// The helpers of the vendors' JavaScript SDKs behind the gateway: tool runners, parsed output, collected streams.

import assert from "node:assert/strict";
import { test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import { BedrockRuntimeClient, ConverseCommand, ConverseStreamCommand } from "@aws-sdk/client-bedrock-runtime";
import { GoogleGenAI } from "@google/genai";
import { Mistral } from "@mistralai/mistralai";
import { NodeHttpHandler } from "@smithy/node-http-handler";
import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

const { SUITE_URL: url, SUITE_KEY: apiKey, SUITE_MODEL: model } = process.env;
const RESULT = "21 degrees";
const CITY = z.object({ name: z.string(), people: z.number().int() });
const asked = () => [{ role: "user", content: "How warm is it in Lisbon? Use get_weather." }];
const city = () => [{ role: "user", content: "The city of Lisbon has 500000 people. Extract it." }];
const hello = () => [{ role: "user", content: "Say hello." }];
const PARAMETERS = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};

// ---------------------------------------------------------------------------------------------------------- OpenAI

const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });

function openaiTool(ran) {
  const run = ({ city }) => {
    ran.push(city);
    return RESULT;
  };
  return { type: "function", function: { name: "get_weather", parameters: PARAMETERS, parse: JSON.parse, function: run } };
}

test("openai: chat.parse", async () => {
  const parsed = await openai.chat.completions.parse({ model, messages: city(), response_format: zodResponseFormat(CITY, "city") });
  CITY.parse(parsed.choices[0].message.parsed);
});

test("openai: chat.runTools", async () => {
  const ran = [];
  const runner = openai.chat.completions.runTools({ model, messages: asked(), tools: [openaiTool(ran)] });
  assert.ok((await runner.finalContent()).includes(RESULT));
  assert.deepEqual(ran, ["Lisbon"]);
});

test("openai: chat.runTools, streamed", async () => {
  const ran = [];
  const runner = openai.chat.completions.runTools({ model, messages: asked(), tools: [openaiTool(ran)], stream: true });
  assert.ok((await runner.finalContent()).includes(RESULT));
  assert.deepEqual(ran, ["Lisbon"]);
});

test("openai: chat.stream", async () => {
  const stream = openai.chat.completions.stream({ model, messages: hello(), stream_options: { include_usage: true } });
  let text = "";
  stream.on("content", (delta) => (text += delta));
  const final = await stream.finalChatCompletion();
  assert.equal(final.choices[0].message.content, text);
  assert.ok((await stream.totalUsage()).completion_tokens > 0);
});

test("openai: responses.parse", async () => {
  const parsed = await openai.responses.parse({ model, input: city(), text: { format: zodTextFormat(CITY, "city") } });
  CITY.parse(parsed.output_parsed);
});

test("openai: responses.stream", async () => {
  const final = await openai.responses.stream({ model, input: "Say hello." }).finalResponse();
  assert.ok(final.output_text);
});

test("openai: responses.stream, parsed", async () => {
  const text = { format: zodTextFormat(CITY, "city") };
  CITY.parse((await openai.responses.stream({ model, input: city(), text }).finalResponse()).output_parsed);
});

// ------------------------------------------------------------------------------------------------------- Anthropic

const anthropic = new Anthropic({ baseURL: url, apiKey, maxRetries: 0 });
const common = { model, max_tokens: 4096 };

function anthropicTool(ran) {
  const run = async ({ city }) => {
    ran.push(city);
    return RESULT;
  };
  return betaZodTool({ name: "get_weather", description: "Get the weather", inputSchema: z.object({ city: z.string() }), run });
}

test("anthropic: toolRunner", async () => {
  const ran = [];
  const final = await anthropic.beta.messages.toolRunner({ ...common, messages: asked(), tools: [anthropicTool(ran)] });
  assert.deepEqual(ran, ["Lisbon"]);
  assert.ok(final.content.at(-1).text.includes(RESULT));
});

test("anthropic: toolRunner, streamed", async () => {
  const ran = [];
  const runner = anthropic.beta.messages.toolRunner({ ...common, messages: asked(), tools: [anthropicTool(ran)], stream: true });
  let final;
  for await (const stream of runner) final = await stream.finalMessage();
  assert.deepEqual(ran, ["Lisbon"]);
  assert.ok(final.content.at(-1).text.includes(RESULT));
});

test("anthropic: parse", async () => {
  const parsed = await anthropic.messages.parse({ ...common, messages: city(), output_config: { format: zodOutputFormat(CITY) } });
  CITY.parse(parsed.parsed_output);
});

test("anthropic: stream", async () => {
  let text = "";
  const stream = anthropic.messages.stream({ ...common, messages: hello() }).on("text", (delta) => (text += delta));
  assert.equal(await stream.finalText(), text);
  assert.ok((await stream.finalMessage()).usage.output_tokens > 0);
});

test("anthropic: stream with tools", async () => {
  const tools = [{ name: "get_weather", input_schema: PARAMETERS }];
  const final = await anthropic.messages.stream({ ...common, messages: asked(), tools }).finalMessage();
  assert.deepEqual(final.content.filter((block) => block.type === "tool_use").map((block) => block.input), [{ city: "Lisbon" }]);
});

// ---------------------------------------------------------------------------------------------------------- Google

const google = new GoogleGenAI({ apiKey, httpOptions: { baseUrl: url } });

function googleTool(ran) {
  return {
    tool: async () => ({ functionDeclarations: [{ name: "get_weather", parametersJsonSchema: PARAMETERS }] }),
    callTool: async (calls) =>
      calls.map((call) => {
        ran.push(call.args.city);
        return { functionResponse: { id: call.id, name: call.name, response: { output: RESULT } } };
      }),
  };
}

test("google: automatic function calling", async () => {
  const ran = [];
  const reply = await google.models.generateContent({ model, contents: asked()[0].content, config: { tools: [googleTool(ran)] } });
  assert.deepEqual(ran, ["Lisbon"]);
  assert.ok(reply.text.includes(RESULT));
});

test("google: automatic function calling, streamed", async () => {
  const ran = [];
  const stream = await google.models.generateContentStream({ model, contents: asked()[0].content, config: { tools: [googleTool(ran)] } });
  let text = "";
  for await (const chunk of stream) text += chunk.text ?? "";
  assert.deepEqual(ran, ["Lisbon"]);
  assert.ok(text.includes(RESULT));
});

test("google: chat", async () => {
  const chat = google.chats.create({ model });
  assert.ok((await chat.sendMessage({ message: "Say hello." })).text);
  let text = "";
  for await (const chunk of await chat.sendMessageStream({ message: "Say it again." })) text += chunk.text ?? "";
  assert.ok(text);
});

test("google: structured output", async () => {
  const config = { responseMimeType: "application/json", responseJsonSchema: z.toJSONSchema(CITY) };
  const reply = await google.models.generateContent({ model, contents: city()[0].content, config });
  CITY.parse(JSON.parse(reply.text));
});

// --------------------------------------------------------------------------------------------------------- Mistral

const mistral = new Mistral({ apiKey, serverURL: url });
const tools = [{ type: "function", function: { name: "get_weather", parameters: PARAMETERS } }];

test("mistral: parse", async () => {
  const parsed = await mistral.chat.parse({ model, messages: city(), responseFormat: CITY });
  CITY.parse(parsed.choices[0].message.parsed);
});

test("mistral: stream", async () => {
  let [text, usage] = ["", undefined];
  for await (const event of await mistral.chat.stream({ model, messages: hello() })) {
    text += event.data.choices[0].delta.content ?? "";
    usage = event.data.usage ?? usage;
  }
  assert.ok(text && usage.completionTokens > 0);
});

test("mistral: stream with tools", async () => {
  const calls = [];
  for await (const event of await mistral.chat.stream({ model, messages: asked(), tools, toolChoice: "any" }))
    calls.push(...(event.data.choices[0].delta.toolCalls ?? []));
  assert.deepEqual(calls.map((call) => JSON.parse(call.function.arguments)), [{ city: "Lisbon" }]);
});

// --------------------------------------------------------------------------------------------------------- Bedrock

// The client's own handler sends HTTP/2 even without TLS.
const requestHandler = new NodeHttpHandler();
const credentials = { accessKeyId: apiKey, secretAccessKey: "secret" };
const bedrock = new BedrockRuntimeClient({ endpoint: url, region: "us-east-1", credentials, requestHandler });
const toolConfig = { tools: [{ toolSpec: { name: "get_weather", inputSchema: { json: PARAMETERS } } }] };
const bedrockAsked = () => [{ role: "user", content: [{ text: asked()[0].content }] }];

test("bedrock: Converse with tools", async () => {
  const first = await bedrock.send(new ConverseCommand({ modelId: model, messages: bedrockAsked(), toolConfig }));
  const { message } = first.output;
  const [{ toolUse }] = message.content.filter((block) => block.toolUse);
  const result = { toolResult: { toolUseId: toolUse.toolUseId, content: [{ text: RESULT }] } };
  const messages = [...bedrockAsked(), message, { role: "user", content: [result] }];
  const answer = await bedrock.send(new ConverseCommand({ modelId: model, messages, toolConfig }));
  assert.ok(answer.output.message.content.some((block) => block.text?.includes(RESULT)));
});

test("bedrock: ConverseStream with tools", async () => {
  const reply = await bedrock.send(new ConverseStreamCommand({ modelId: model, messages: bedrockAsked(), toolConfig }));
  let input = "";
  for await (const event of reply.stream) input += event.contentBlockDelta?.delta?.toolUse?.input ?? "";
  assert.deepEqual(JSON.parse(input), { city: "Lisbon" });
});
