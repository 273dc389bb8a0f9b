"""The style sheet of the HTML page: light and dark, narrow and wide, and for print."""

MODEL_COLORS = 6
"""The number of classes `m0`, `m1`, … for the models of a conversation."""

STYLE = """\
:root {
  --page: #fbfaf8; --ink: #1d1b18; --soft: #6d675f; --line: #e4e0d9; --card: #fff; --mine: #eef3f8; --code: #f4f2ee;
  --accent: #2b6a99; --good: #3c8b57; --bad: #b3402e; --wait: #a9741a;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #16171a; --ink: #e6e3dd; --soft: #98938a; --line: #2e3036; --card: #1c1e22; --mine: #1c2630;
    --code: #212328; --accent: #7db8e2; --good: #6cc08b; --bad: #e8826f; --wait: #dcae5e;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.6 system-ui, sans-serif; }
main { max-width: 50rem; margin: 0 auto; padding: 2.5rem 1.25rem 5rem; }
header { margin-bottom: 2rem; padding-bottom: 1.25rem; border-bottom: 1px solid var(--line); }
h1 { margin: 0 0 .75rem; font-size: 1.6rem; line-height: 1.25; font-weight: 650; overflow-wrap: anywhere; }
dl { display: flex; flex-wrap: wrap; gap: .25rem 1.5rem; margin: 0 0 .5rem; font-size: .85rem; }
dl div { display: flex; gap: .4rem; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
article { margin: 0 0 1.5rem; }
h2 { margin: 0 0 .25rem; font-size: .78rem; font-weight: 600; color: var(--soft); letter-spacing: .02em; }
h2 small { font-weight: 400; }
.human, .system { padding: .8rem 1rem; background: var(--mine); border-radius: .6rem; }
.human h2 { color: var(--accent); }
.ai { --model: var(--soft); padding-left: .9rem; border-left: 3px solid var(--model); }
.m0 { --model: #b4632f; }
.m1 { --model: #2f8f83; }
.m2 { --model: #7560b8; }
.m3 { --model: #a8842a; }
.m4 { --model: #4177b8; }
.m5 { --model: #b04a78; }
.model { color: var(--model); font-weight: 600; }
.switch {
  margin: 0 0 1.5rem; padding: .5rem .9rem; border: 1px dashed var(--line); border-radius: .4rem; color: var(--soft);
  font-size: .85rem; overflow-wrap: anywhere;
}
.switch ul { margin: .25rem 0 0; padding-left: 1.2rem; }
p { margin: 0 0 .75rem; white-space: pre-wrap; overflow-wrap: anywhere; }
.text > :last-child, .body > :last-child { margin-bottom: 0; }
.text + .text { margin-top: .75rem; }
.md p { white-space: normal; }
.md :is(h3, h4, h5, h6) { margin: 1.1rem 0 .4rem; font-size: 1rem; line-height: 1.35; font-weight: 650; }
.md h3 { font-size: 1.2rem; }
.md h4 { font-size: 1.08rem; }
.md > :first-child { margin-top: 0; }
.md :is(ul, ol) { margin: 0 0 .75rem; padding-left: 1.6rem; }
.md :is(li, li > p) { margin: 0 0 .2rem; overflow-wrap: anywhere; }
.md li > :is(ul, ol) { margin: .2rem 0 0; }
.md blockquote { margin: 0 0 .75rem; padding-left: .9rem; border-left: 2px solid var(--line); color: var(--soft); }
.md table { display: block; margin: 0 0 .75rem; overflow: auto; border-collapse: collapse; font-size: .92em; }
.md :is(th, td) { padding: .3rem .6rem; border: 1px solid var(--line); text-align: left; vertical-align: top; }
.md .right { text-align: right; }
.md .center { text-align: center; }
.md hr { margin: 1rem 0; border: 0; border-top: 1px solid var(--line); }
code, pre { font: .86em/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
:is(p, li, td, th, h3, h4, h5, h6) > code { padding: .1em .3em; background: var(--code); border-radius: .25em; }
pre {
  position: relative; margin: 0 0 .75rem; padding: .7rem .85rem; max-height: 32rem; overflow: auto;
  background: var(--code); border-radius: .4rem; white-space: pre-wrap; overflow-wrap: anywhere;
}
pre code { font-size: 1em; }
pre[data-label]::before {
  content: attr(data-label); display: block; margin-bottom: .25rem; color: var(--soft);
  font: .72rem system-ui, sans-serif;
}
details { margin: .5rem 0; }
summary { cursor: pointer; overflow-wrap: anywhere; }
summary span { color: var(--soft); }
.given { font-size: .9rem; }
.given > .body, .given ul, .call { background: var(--card); border: 1px solid var(--line); border-radius: .4rem; }
.given > .body, .given ul { margin: .5rem 0; padding: .75rem 1rem; }
.given ul { padding-left: 2rem; }
.call { border-left: 3px solid var(--good); }
.call > summary { padding: .4rem .75rem; font-size: .9rem; }
.call > summary span { font: .86em ui-monospace, Menlo, Consolas, monospace; }
.call > .body { padding: .25rem .75rem .75rem; }
.call code { font-weight: 600; }
.call pre code { font-weight: 400; }
.error, .denied, .orphan { border-left-color: var(--bad); }
.pending, .cancelled, .interrupted { border-left-color: var(--wait); }
.state { margin-left: .5rem; font-style: normal; font-size: .8rem; color: var(--wait); }
.error .state, .denied .state { color: var(--bad); }
.thinking { color: var(--soft); font-size: .9rem; }
.thinking > .body { margin: .4rem 0 .4rem .4rem; padding-left: .9rem; border-left: 2px solid var(--line); }
.refusal { color: var(--bad); }
.aside { color: var(--soft); font-size: .9rem; }
a { color: var(--accent); }
figure { margin: .5rem 0; }
img, video {
  max-width: 100%; max-height: 32rem; border-radius: min(.4rem, 10%); border: 1px solid var(--line);
}
figcaption { color: var(--soft); font-size: .8rem; }
@media print {
  :root {
    --page: #fff; --ink: #000; --soft: #555; --line: #bbb; --card: #fff; --mine: #fff; --code: #fff;
    --accent: #000; --good: #777; --bad: #000; --wait: #000;
  }
  body { font-size: 10.5pt; }
  main { max-width: none; padding: 0; }
  .human { border: 1px solid var(--line); }
  pre { max-height: none; overflow: visible; border: 1px solid var(--line); }
  details::details-content { content-visibility: visible; block-size: auto; }
  summary { list-style: none; }
  h2, summary { break-after: avoid; }
  figure, .call > summary { break-inside: avoid; }
}
"""
