// Vercel's AI SDK with its providers behind the gateway: texts, tool loops, structured output. Run by `make suites`.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createAmazonBedrock } from "@ai-sdk/amazon-bedrock";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createAzure } from "@ai-sdk/azure";
import { createDeepSeek } from "@ai-sdk/deepseek";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createMistral } from "@ai-sdk/mistral";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { Output, ToolLoopAgent, generateText, isStepCount, streamText, tool } from "ai";
import { z } from "zod";

const { SUITE_URL: url, SUITE_KEY: apiKey, SUITE_MODEL: name } = process.env;
const openai = createOpenAI({ baseURL: `${url}/v1`, apiKey });
const bedrock = { baseURL: url, region: "us-east-1", accessKeyId: apiKey, secretAccessKey: "secret" };
const MODELS = {
  "openai responses": openai.responses(name),
  "openai chat": openai.chat(name),
  "openai-compatible": createOpenAICompatible({ name: "segue", baseURL: `${url}/v1`, apiKey, includeUsage: true, supportsStructuredOutputs: true })(name),
  azure: createAzure({ baseURL: `${url}/openai`, apiKey })(name),
  anthropic: createAnthropic({ baseURL: `${url}/v1`, apiKey })(name),
  google: createGoogleGenerativeAI({ baseURL: `${url}/v1beta`, apiKey })(name),
  "google provider/model": createGoogleGenerativeAI({ baseURL: `${url}/v1beta`, apiKey })("up/" + process.env.SUITE_UPSTREAM_MODEL),
  mistral: createMistral({ baseURL: `${url}/mistral/v1`, apiKey })(name),
  deepseek: createDeepSeek({ baseURL: `${url}/v1`, apiKey })(name),
  "amazon-bedrock": createAmazonBedrock(bedrock)(name),
};
const ASKED = "How warm is it in Lisbon? Use get_weather.";
const RESULT = "21 degrees";
const CITY = z.object({ name: z.string(), people: z.number().int() });
const CITY_PROMPT = "The city of Lisbon has 500000 people. Extract it.";
const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

function weather(ran) {
  return tool({
    description: "Get the weather of a city",
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => {
      ran.push(city);
      return RESULT;
    },
  });
}

for (const [provider, model] of Object.entries(MODELS)) {
  describe(provider, () => {
    const common = { model, maxRetries: 0 };

    test(`${provider}: text`, async () => {
      const { text, usage, finishReason } = await generateText({ ...common, prompt: "Say hello." });
      assert.ok(text);
      assert.ok(usage.inputTokens > 0 && usage.outputTokens > 0);
      assert.equal(finishReason, "stop");
    });

    test(`${provider}: streamed text`, async () => {
      const stream = streamText({ ...common, prompt: "Say hello.", onError: () => {} });
      let text = "";
      for await (const part of stream.textStream) text += part;
      assert.ok(text);
      assert.equal(await stream.finishReason, "stop");
      assert.ok((await stream.usage).outputTokens > 0);
    });

    test(`${provider}: system and several messages`, async () => {
      const messages = [
        { role: "user", content: "Say hello." },
        { role: "assistant", content: "Hello." },
        { role: "user", content: "Say it again." },
      ];
      const { text } = await generateText({ ...common, instructions: "Be brief.", messages });
      assert.ok(text);
    });

    test(`${provider}: tool loop`, async () => {
      const ran = [];
      const tools = { get_weather: weather(ran) };
      const { text, steps } = await generateText({ ...common, prompt: ASKED, tools, stopWhen: isStepCount(4) });
      assert.deepEqual(ran, ["Lisbon"]);
      assert.equal(steps.length, 2);
      assert.ok(text.includes(RESULT));
    });

    test(`${provider}: streamed tool loop`, async () => {
      const ran = [];
      const tools = { get_weather: weather(ran) };
      const stream = streamText({ ...common, prompt: ASKED, tools, stopWhen: isStepCount(4), onError: () => {} });
      const kinds = [];
      for await (const part of stream.fullStream) {
        if (part.type === "error") throw part.error;
        kinds.push(part.type);
      }
      assert.deepEqual(ran, ["Lisbon"]);
      assert.ok(kinds.includes("tool-call") && kinds.includes("tool-result"));
      assert.ok((await stream.text).includes(RESULT));
    });

    test(`${provider}: agent`, async () => {
      const ran = [];
      const agent = new ToolLoopAgent({ ...common, tools: { get_weather: weather(ran) }, stopWhen: isStepCount(4) });
      const { text } = await agent.generate({ prompt: ASKED });
      assert.deepEqual(ran, ["Lisbon"]);
      assert.ok(text.includes(RESULT));
    });

    test(`${provider}: a tool is required`, async () => {
      const tools = { get_weather: weather([]) };
      const { toolCalls } = await generateText({ ...common, prompt: "Lisbon.", tools, toolChoice: "required" });
      assert.equal(toolCalls[0].toolName, "get_weather");
    });

    test(`${provider}: one tool is chosen`, async () => {
      const time = tool({ description: "Get the time", inputSchema: z.object({ zone: z.string() }) });
      const tools = { get_weather: weather([]), get_time: time };
      const toolChoice = { type: "tool", toolName: "get_time" };
      const { toolCalls } = await generateText({ ...common, prompt: "Lisbon.", tools, toolChoice });
      assert.deepEqual(toolCalls.map((call) => call.toolName), ["get_time"]);
    });

    test(`${provider}: structured output`, async () => {
      const { output } = await generateText({ ...common, prompt: CITY_PROMPT, output: Output.object({ schema: CITY }) });
      CITY.parse(output);
    });

    test(`${provider}: streamed structured output`, async () => {
      const options = { prompt: CITY_PROMPT, output: Output.object({ schema: CITY }), onError: () => {} };
      const stream = streamText({ ...common, ...options });
      await stream.consumeStream();
      CITY.parse(await stream.output);
    });

    test(`${provider}: picture`, async () => {
      const content = [{ type: "text", text: "What is this?" }, { type: "file", data: PIXEL, mediaType: "image/png" }];
      const { text } = await generateText({ ...common, messages: [{ role: "user", content }] });
      assert.ok(text);
    });
  });
}
