"""`jumar compare`: two agents, or two campaigns, run by run."""

from __future__ import annotations

import click

from jumar.cli.console.output import Console
from jumar.cli.parameters.command_options import add_output_options
from jumar.cli.parameters.environment import read_environment
from jumar.cli.parameters.run_argument import TRUST
from jumar.errors import BadInput
from jumar.runs.setup.marks import Trust


@click.command(epilog="Example: jumar compare fast careful --in last")
@click.argument("a")
@click.argument("b")
@click.option("--in", "campaign", default="last", show_default=True, help="Campaign of the challenge that has both.")
@TRUST
@add_output_options
def compare(  # noqa: PLR0913  one parameter for each option
    a: str, b: str, *, campaign: str, trust: bool, as_json: bool, quiet: bool
) -> int:
    """Compare A with B, in pairs of the same task and rollout: agents of a challenge, CAMPAIGN:AGENT, or campaigns.

    Tests by McNemar's exact test, composites by a bootstrap over rollouts.
    """
    from jumar.challenges.find_contestants import find_contestant  # noqa: PLC0415  as above
    from jumar.challenges.ranking.comparison import compare as compare_runs  # noqa: PLC0415  it is slow to import
    from jumar.challenges.ranking.run_score import JudgeStanding  # noqa: PLC0415  as above

    voice = Console(json=as_json, quiet=quiet)
    first, second = (find_contestant(word, campaign, Trust(read_environment(), trust)) for word in (a, b))
    if first.points != second.points:
        raise BadInput(f"{a} and {b} were scored by different points; compare what one challenge scored")
    judge = first.judge
    if first.judge != second.judge:
        voice.note("principles do not count: the judge's standing differs")
        judge = JudgeStanding(absent=True)
    found = compare_runs(first.runs, second.runs, first.points, judge)
    if not found.pairs:
        raise BadInput(
            f"{a} and {b} have no run of the same task and rollout number that counts; nothing can be paired"
        )
    interval = (
        f" (95 %: {found.low:+.1f} to {found.high:+.1f})" if found.low is not None and found.high is not None else ""
    )
    left = f"; {found.unpaired} without a counterpart that counts are left out" if found.unpaired else ""
    voice.say(f"{found.pairs} pairs of runs{left}")
    voice.say(f"composite  {a} is {found.difference:+.1f} points from {b}{interval}")
    voice.say(f"           chance of that, or more, if {a} were no better: {found.p_better:.3g}")
    voice.say(
        f"tests      {found.tests_a} pass with {a} alone, {found.tests_b} with {b} alone "
        f"(McNemar, exact: p = {found.p_tests:.3g})"
    )
    voice.print_result(found)
    return 0
