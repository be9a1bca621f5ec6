# SPDX-License-Identifier: Apache-2.0
"""The chat APIs as server.py speaks them: streams of events, whole replies and errors."""
import json


class Api:
    """One of the API formats; `output` counts the tokens sent."""

    def __init__(self, handler, body):
        self.handler = handler
        self.model = body.get("model", "")
        self.input = max(1, len(json.dumps(body)) // 4)
        self.output = 0
        self.cached = 0
        self.written = 0


class Anthropic(Api):
    index = -1  # of the block

    def error(self, kind, message):
        return {"type": "error", "error": {"type": kind, "message": message}}

    def usage(self):
        return {"input_tokens": self.input - self.cached - self.written,
                "cache_read_input_tokens": self.cached,
                "cache_creation_input_tokens": self.written, "output_tokens": self.output}

    def event(self, name, **data):
        return f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n"

    def begin(self):
        return self.event("message_start", message={
            "id": "msg_1", "type": "message", "role": "assistant", "content": [],
            "model": self.model, "stop_reason": None, "usage": {**self.usage(), "output_tokens": 1}
        }) + self.event("ping")

    def text(self, words):
        self.index += 1
        yield self.event("content_block_start", index=self.index,
                         content_block={"type": "text", "text": ""})
        for word in words:
            self.output += 1
            yield self.event("content_block_delta", index=self.index,
                             delta={"type": "text_delta", "text": word})
        yield self.event("content_block_stop", index=self.index)

    def tools(self, calls):
        for name, tool, arguments in calls:
            self.index += 1
            yield self.event("content_block_start", index=self.index, content_block={
                "type": "tool_use", "id": name, "name": tool, "input": {}})
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            for at in range(0, len(text), 7):
                self.output += 1
                yield self.event("content_block_delta", index=self.index, delta={
                    "type": "input_json_delta", "partial_json": text[at:at + 7]})
            yield self.event("content_block_stop", index=self.index)

    def stop(self, why):
        names = {"end": "end_turn", "tools": "tool_use", "length": "max_tokens",
                 "refusal": "refusal"}
        return self.event("message_delta", delta={"stop_reason": names[why]},
                          usage={"output_tokens": self.output})

    def done(self):
        return self.event("message_stop")

    def whole(self, words):
        self.output += len(words)
        return {"id": "msg_1", "type": "message", "role": "assistant", "model": self.model,
                "content": [{"type": "text", "text": "".join(words)}], "stop_reason": "end_turn",
                "usage": self.usage()}

    def error_event(self, kind, message):
        return "event: error\ndata: " + json.dumps(self.error(kind, message)) + "\n\n"


class OpenAi(Api):
    def error(self, kind, message):
        return {"error": {"type": kind, "message": message, "code": None}}

    def usage(self):
        return {"prompt_tokens": self.input, "completion_tokens": self.output,
                "total_tokens": self.input + self.output,
                "prompt_tokens_details": {"cached_tokens": self.cached,
                                          "cache_write_tokens": self.written}}

    def chunk(self, delta, finish=None):
        return "data: " + json.dumps({
            "id": "c1", "object": "chat.completion.chunk", "model": self.model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}) + "\n\n"

    def begin(self):
        return self.chunk({"role": "assistant", "content": ""})

    def text(self, words):
        for word in words:
            self.output += 1
            yield self.chunk({"content": word})

    def tools(self, calls):
        # The parts of parallel calls are interleaved and distinguished by the index.
        parts = []
        for index, (name, tool, arguments) in enumerate(calls):
            yield self.chunk({"tool_calls": [{"index": index, "id": name, "type": "function",
                                              "function": {"name": tool, "arguments": ""}}]})
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            parts += [(at, index, text[at:at + 7]) for at in range(0, len(text), 7)]
        for _, index, part in sorted(parts):
            self.output += 1
            yield self.chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]})

    def stop(self, why):
        names = {"end": "stop", "tools": "tool_calls", "length": "length",
                 "refusal": "content_filter"}
        return self.chunk({}, names[why])

    def done(self):
        usage = {"choices": [], "model": self.model, "usage": self.usage()}
        return "data: " + json.dumps(usage) + "\n\ndata: [DONE]\n\n"

    def whole(self, words):
        self.output += len(words)
        return {"id": "c1", "object": "chat.completion", "model": self.model, "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "".join(words)},
             "finish_reason": "stop"}], "usage": self.usage()}

    def error_event(self, kind, message):
        return "data: " + json.dumps(self.error(kind, message)) + "\n\n"
