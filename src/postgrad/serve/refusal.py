"""`Refusal`: a request that the endpoint will not serve, in the shape that OpenAI clients read.

Clients choose the exception they raise by the HTTP status and show `message`; a body of any other shape
(``{"detail": ...}``) loses the message.
"""

from __future__ import annotations

from typing import Any

from postgrad.core.errors import UserError


class Refusal(UserError):
    """The client's request cannot be served; `param` names the field at fault, `code` is for programs."""

    def __init__(self, what: str, *, param: str | None = None, code: str | None = None, status: int = 400) -> None:
        self.param = param
        self.code = code
        self.status = status
        super().__init__(what)

    @property
    def body(self) -> dict[str, Any]:
        """The response body."""
        return error_body(str(self), status=self.status, param=self.param, code=self.code)


def error_body(message: str, *, status: int = 500, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    """An error in OpenAI's shape; its type follows from the status."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def context_too_long(prompt_tokens: int, *, context_length: int) -> Refusal:
    """The prompt leaves no room for an answer. Cutting it silently would answer another question."""
    return Refusal(
        f"this model's context length is {context_length} tokens; the messages and tools take {prompt_tokens}; "
        "shorten them",
        param="messages",
        code="context_length_exceeded",
    )


def queue_full(waiting: int) -> Refusal:
    """As many requests wait as the server lets wait."""
    return Refusal(f"{waiting} requests are waiting already; try again later", code="queue_full", status=503)
