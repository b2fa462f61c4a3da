"""The MCP server itself: passes tool calls from the SDK to the dispatcher, and keeps no state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jumar import __version__
from jumar.errors import BadInput
from jumar.mcp_server import responses as answers
from jumar.mcp_server import tools as calls

if TYPE_CHECKING:
    import mcp_types as types
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server

    from jumar.mcp_server.dispatch import ToolDispatcher

SESSION_HEADER = "mcp-session-id"

ONE = "stdio"
"""The only client there is on standard input."""

INSTRUCTIONS = (
    "Tests decide what may be edited. open_task copies a repository, runs its tests and tells which are red. A file "
    "that is no test can be edited only (1) while a test is red by the code under test, (2) after edit_claim for that "
    "test and that file, and (3) the edit is kept only if run_tests then shows the test green and no other one lost; "
    "else it goes back. Where no test asks for the change yet, write a failing one first, in a new test file and "
    "nothing else, and call run_tests. Tests that came with the task are read-only. Edit with write_file, edit_file "
    "and delete_file: what is changed in the copy by other ways is judged by the same rule. A refusal says what would "
    "satisfy. Where a test contradicts the instruction or another test, call escalate. When all is green, call finish; "
    "with apply=true the result is written onto the original folder. In clients without a session, pass `run` with "
    "every call."
)
"""Instructions that a host may show its model before the first call."""


def check_installed() -> None:
    """Check that the SDK can be imported.

    Raises:
        BadInput: if it cannot.
    """
    try:
        import mcp.server.lowlevel  # noqa: F401, PLC0415  an extra
        import mcp_types  # noqa: F401, PLC0415  as above
    except ImportError as error:
        raise BadInput(f"`jumar mcp` needs the MCP SDK ({error.name} is missing): pip install 'jumar[mcp]'") from None


def build_server(gatehouse: ToolDispatcher, *, alone: bool) -> Server[Any]:
    """Return the server; *alone*: one client speaks to this process, and every call is its own."""
    import mcp_types as types  # noqa: PLC0415  an extra, and 0.5 s to import
    from mcp.server.lowlevel import Server  # noqa: PLC0415  as above

    async def listed(_: ServerRequestContext, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[describe_tool(name) for name in calls.OFFERS])

    async def called(ctx: ServerRequestContext, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in calls.OFFERS:
            reason = f"there is no tool {params.name[:60]!r}; there are {', '.join(calls.OFFERS)}"
            return build_result(answers.ToolResponse(ok=False, reason=reason))
        client = ONE if alone else _get_client(ctx)
        return build_result(await gatehouse.call(client, params.name, params.arguments or {}))

    return Server(
        "jumar",
        version=__version__,
        title="jumar: no edit without a red test",
        instructions=INSTRUCTIONS,
        on_list_tools=listed,
        on_call_tool=called,
    )


def describe_tool(name: str) -> types.Tool:
    """Return the tool *name*, as it is described to a host."""
    import mcp_types as types  # noqa: PLC0415  as above

    offer = calls.OFFERS[name]
    return types.Tool(
        name=name,
        title=offer.title,
        description=offer.about,
        input_schema=calls.build_schema(offer.takes),
        output_schema=calls.build_schema(offer.gives),
        annotations=types.ToolAnnotations(
            title=offer.title,
            read_only_hint=offer.reads,
            destructive_hint=offer.destroys,
            idempotent_hint=offer.repeats,
            open_world_hint=False,
        ),
    )


def build_result(answer: answers.ToolResponse) -> types.CallToolResult:
    """Return *answer* as structured content, and as a text for hosts that show texts only."""
    import mcp_types as types  # noqa: PLC0415  as above

    return types.CallToolResult(
        content=[types.TextContent(text=answers.format_text(answer))],
        structured_content=answers.encode_fields(answer),
        is_error=not answer.ok,
    )


def _get_client(ctx: ServerRequestContext) -> str:
    """Return the session of an HTTP client; empty: its version of the protocol has none."""
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS  # noqa: PLC0415  as above

    if ctx.request is None or ctx.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
        return ""
    return str(ctx.request.headers.get(SESSION_HEADER, ""))
