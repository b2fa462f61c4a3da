"""Names that OpenTelemetry's semantic conventions for generative AI and tests give to spans and attributes.

They are written out: the constants of OpenTelemetry's Python package for `gen_ai` are deprecated, and move.
"""

from __future__ import annotations

OPERATION = "gen_ai.operation.name"
CHAT, EXECUTE_TOOL, INVOKE_AGENT = "chat", "execute_tool", "invoke_agent"
"""Values of the operation; a span is called by its operation and the model, tool or agent."""

PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
AGENT = "gen_ai.agent.name"
AGENT_VERSION = "gen_ai.agent.version"
CONVERSATION = "gen_ai.conversation.id"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
"""All tokens of the prompt, those from a cache too."""
CACHED_TOKENS = "gen_ai.usage.cache_read.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
TOOL = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
ERROR = "error.type"
SERVICE, SERVICE_VERSION = "service.name", "service.version"
SUITE, SUITE_STATUS = "test.suite.name", "test.suite.run.status"
SCHEMA_URL = "https://opentelemetry.io/schemas/1.41.0"

PROVIDERS = {
    "google": "gcp.gemini",
    "bedrock": "aws.bedrock",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}
"""Provider, as jumar calls it, where the conventions have another word."""


def get_provider(model: str) -> str:
    """Return the provider of *model*, such as `anthropic:NAME`; of scripts and repair the kind."""
    kind = model.partition(":")[0] or "unknown"
    return PROVIDERS.get(kind, kind)
