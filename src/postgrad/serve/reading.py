"""From sampled text to events, piece by piece: characters, then stop strings, then tool calls.

Each stage holds back what is not certain yet and gives the rest on, so that the events say the same however the
text is cut into pieces:

    token ids -> Characters -> StopStrings -> ToolCalls -> TextDelta | ToolCallDone

A stop string is looked for in the model's raw text, tool calls included. A call is given on when its closing tag
came; half a call is never given on as a call or as text.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence

from postgrad.core.message import Message, Text, ToolCall
from postgrad.serve.engine import Event, TextDelta, ToolCallDone

OPEN, CLOSE = "<tool_call>", "</tool_call>"
REPLACEMENT = "\ufffd"

Parse = Callable[[str], Message]
Decode = Callable[[Sequence[int]], str]


class Characters:
    """Decodes tokens one by one; a character spread over several tokens appears whole.

    `decode` is run on a short window, because a tokenizer may decode a token differently after another one
    (leading spaces). Bytes that never become a character appear as U+FFFD once the text goes on.
    """

    def __init__(self, decode: Decode) -> None:
        self._decode = decode
        self._window: list[int] = []
        self._shown = 0  # characters of the window that were given on
        self._settled = 0  # tokens of the window that those characters come from

    def push(self, token: int) -> str:
        """The text that `token` makes certain, often empty within a character."""
        self._window.append(token)
        text = self._decode(self._window)
        # A character that lacks its last bytes decodes to at most three U+FFFD at the end.
        complete = max(len(text.rstrip(REPLACEMENT)), len(text) - 3)
        new = text[self._shown : complete]
        self._shown = max(self._shown, complete)
        if complete == len(text):
            # The next window starts with the tokens of this delta: decoders look back one step at most.
            self._window = self._window[self._settled :]
            self._settled = len(self._window)
            self._shown = len(self._decode(self._window))
        return new

    def close(self) -> str:
        """What is left: the U+FFFD of bytes that never became a character."""
        text = self._decode(self._window)[self._shown :]
        self._window, self._shown, self._settled = [], 0, 0
        return text


class StopStrings:
    """Ends the text at the stop string that is complete first; no byte of it is given on."""

    def __init__(self, stop: Sequence[str]) -> None:
        self._stop = tuple(stop)
        self._held = ""
        self.hit = False

    def push(self, text: str) -> str:
        """The text that can no longer be part of a stop string."""
        self._held += text
        found = [
            (self._held.find(stop) + len(stop), self._held.find(stop)) for stop in self._stop if stop in self._held
        ]
        if found:
            self.hit = True
            _, start = min(found)
            return self._release(start, drop=True)
        return self._release(len(self._held) - _overlap(self._held, self._stop))

    def close(self) -> str:
        """The held text: it only began like a stop string."""
        return self._release(len(self._held))

    def _release(self, length: int, *, drop: bool = False) -> str:
        text, self._held = self._held[:length], "" if drop else self._held[length:]
        return text


class ToolCalls:
    """Separates text from ``<tool_call>`` blocks. White space that only sets calls apart is layout and is dropped.

    A block that the renderer does not read as a well-formed call is passed on as text: it is what the model said, and a
    client cannot act on it. Evaluation reads calls with the same renderer, so what counts as a call is the same here.
    """

    def __init__(self, parse: Parse, *, prefix: str) -> None:
        self._parse = parse
        self._prefix = prefix
        self._held = ""
        self._space = ""  # white space that may turn out to stand beside a call
        self._spoke = False
        self._calls = 0

    def push(self, text: str) -> list[Event]:
        """The events that `text` makes certain."""
        self._held += text
        events: list[Event] = []
        while OPEN in self._held:
            before, _, rest = self._held.partition(OPEN)
            block, closed, after = rest.partition(CLOSE)
            if not closed:
                events += self._text(before)
                self._held = OPEN + rest
                return events
            events += self._text(before) + self._block(OPEN + block + CLOSE)
            self._held = after
        certain = len(self._held) - _overlap(self._held, (OPEN,))
        events += self._text(self._held[:certain])
        self._held = self._held[certain:]
        return events

    def close(self, *, cut: bool) -> tuple[list[Event], str]:
        """The last events, and the text of a call that was cut off.

        `cut`: the text was ended from outside; otherwise the model ended its turn and may have left the tag open.
        """
        held, self._held = self._held, ""
        if cut and held.startswith(OPEN):
            return [], held
        events = self._block(held) if held.startswith(OPEN) else self._text(held)
        if self._space and not self._calls:
            events.append(TextDelta(self._space))
        return events, ""

    def _block(self, block: str) -> list[Event]:
        calls = [call for call in self._parse(block).tool_calls if call.parse_error is None]
        if not calls:
            return self._text(block)
        return [ToolCallDone(self._numbered(call)) for call in calls]

    def _numbered(self, call: ToolCall) -> ToolCall:
        self._calls += 1
        name = f"{self._prefix}_{self._calls}"
        return ToolCall(name, call.name, call.arguments_raw, call.arguments, provider_id=name)

    def _text(self, text: str) -> list[Event]:
        visible = text.rstrip()
        if not visible:
            self._space += text
            return []
        leads = bool(self._calls) and not self._spoke
        shown = visible.lstrip() if leads else self._space + visible
        self._space, self._spoke = text[len(visible) :], True
        return [TextDelta(shown)]


class WholeAnswer(ToolCalls):
    """Text and calls of a form whose calls have no closing tag: nothing is certain before the answer is complete."""

    def push(self, text: str) -> list[Event]:
        """Nothing yet."""
        self._held += text
        return []

    def close(self, *, cut: bool) -> tuple[list[Event], str]:
        """All events, and the text of a call that was cut off."""
        held, self._held = self._held, ""
        events: list[Event] = []
        unfinished = ""
        for block in self._parse(held).blocks:
            if isinstance(block, ToolCall) and block.parse_error is None:
                events.append(ToolCallDone(self._numbered(block)))
            elif isinstance(block, ToolCall) and cut:
                unfinished = block.arguments_raw
            elif isinstance(block, Text | ToolCall):
                events += self._text(block.text if isinstance(block, Text) else block.arguments_raw)
        return events, unfinished


def _overlap(text: str, marks: Sequence[str]) -> int:
    """Length of the longest end of `text` that is a proper beginning of a mark."""
    longest = max((len(mark) for mark in marks), default=1) - 1
    for length in range(min(longest, len(text)), 0, -1):
        if any(mark.startswith(text[-length:]) for mark in marks):
            return length
    return 0


class ActionReader:
    """The stages after decoding in one: pieces of text in, events out. Without `parse` there are no tool calls.

    `whole` is for calls without closing tags: the answer is read when it is complete.
    """

    def __init__(self, *, stop: Sequence[str] = (), parse: Parse | None = None, whole: bool = False) -> None:
        self._stop = StopStrings(stop)
        # Clients join calls of a whole conversation by id, so ids of two answers must differ.
        reader = WholeAnswer if whole else ToolCalls
        self._calls = reader(parse, prefix=f"call_{secrets.token_hex(6)}") if parse else None

    @property
    def stopped(self) -> bool:
        """Whether a stop string ended the text."""
        return self._stop.hit

    def push(self, text: str) -> list[Event]:
        """The events that a piece makes certain."""
        return self._events(self._stop.push(text))

    def close(self, *, cut: bool = False) -> tuple[list[Event], str]:
        """The last events, and the text of a call that was cut off by a limit (`cut`) or a stop string."""
        events = [] if self._stop.hit else self._events(self._stop.close())
        if self._calls is None:
            return events, ""
        last, unfinished = self._calls.close(cut=cut or self._stop.hit)
        return events + last, unfinished

    def _events(self, text: str) -> list[Event]:
        if self._calls is not None:
            return self._calls.push(text)
        return [TextDelta(text)] if text else []
