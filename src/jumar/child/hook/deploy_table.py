"""Commands that change what others use: clouds, clusters, registries, releases, other machines. A table, no code."""

from __future__ import annotations

import re
from collections.abc import Sequence

DRY = frozenset({
    "--dry-run", "--dryrun", "--check", "--syntax-check", "--list-tasks", "--list-hosts", "--help", "-h", "--version",
    "--snapshot", "--noop", "--just-print", "--recon",
})  # fmt: skip
"""Options with which nothing is sent: `--dry-run=client` counts, `--dry-run=none` does not."""


def _list_at_depths(depths: Sequence[int], verbs: str, more: str) -> str:
    """Return *more*, and each of *verbs* below as many groups of commands as one of *depths*."""
    return ", ".join([more, *("* " * depth + verb for depth in depths for verb in verbs.split(", "))])


_CLUSTER = (
    "apply, create, delete, replace, patch, edit, set, scale, drain, cordon, taint, label, annotate, expose, "
    "autoscale, run, cp, exec, rollout restart, rollout undo, rollout pause, rollout resume"
)

TABLE: dict[str, str] = {
    "gcloud": _list_at_depths(
        (1, 2, 3),
        "create, delete, deploy, update, import, restore, set-iam-policy, add-iam-policy-binding",
        "builds submit, storage cp, storage rm, storage mv, storage rsync, app services set-traffic",
    ),
    "gsutil": "cp, mv, rm, rsync, rb, mb, setmeta, * cp, * rm, * rsync",
    "bq": "rm, mk, load, cp, update",
    "aws": _list_at_depths(
        (1,),
        "create-*, delete-*, update-*, put-*, terminate-*, run-*, start-*, stop-*, deploy*, publish*, invoke*, "
        "register-*, deregister-*, modify-*, remove-*, reboot-*, attach-*, detach-*, send-*",
        "s3 cp, s3 mv, s3 rm, s3 sync, s3 rb, s3 mb, deploy *",
    ),
    "az": _list_at_depths(
        (1, 2, 3),
        "create, delete, update, deploy, start, stop, restart, purge, upload, swap",
        "webapp up, containerapp up",
    ),
    "kubectl": _CLUSTER,
    "oc": f"{_CLUSTER}, new-app",
    "helm": "install, upgrade, uninstall, delete, rollback, push",
    "helmfile": "apply, sync, destroy, delete",
    "argocd": "app sync, app delete, app set, app create",
    "flux": "reconcile *, delete *, create *, bootstrap *",
    "nomad": "run, stop, job run, job stop",
    "skaffold": "run, deploy, delete",
    **dict.fromkeys(
        ("terraform", "tofu", "terragrunt"),
        "apply, destroy, import, taint, untaint, state rm, state mv, state push, run-all *",
    ),
    "pulumi": "up, update, destroy, refresh, stack rm",
    "cdk": "deploy, destroy, bootstrap",
    "sam": "deploy, delete, sync",
    **dict.fromkeys(("serverless", "sls"), "deploy, remove, rollback"),
    "sst": "deploy, remove",
    "chalice": "deploy, delete",
    "zappa": "deploy, update, undeploy",
    "eb": "deploy, create, terminate",
    "copilot": "deploy, * deploy, * delete",
    "amplify": "push, publish, delete",
    "firebase": "deploy, functions:delete, hosting:disable, firestore:delete, database:remove",
    "vercel": "-, deploy, promote, rollback, remove, rm, alias, redeploy",
    "netlify": "deploy, sites:delete",
    "surge": "-, teardown",
    **dict.fromkeys(("fly", "flyctl"), "deploy, launch, destroy, apps destroy, machine destroy, scale *, secrets set"),
    "heroku": (
        "apps:destroy, container:push, container:release, releases:rollback, ps:scale, config:set, "
        "pg:reset, pg:push, pipelines:promote, container push, container release"
    ),
    "wrangler": "deploy, publish, delete, rollback, pages deploy, pages publish, versions deploy, secret put",
    "railway": "up, deploy, down, redeploy",
    "render": "deploys create",
    "kamal": "deploy, setup, redeploy, rollback, remove",
    "cap": "deploy, * deploy, * deploy:*",
    "fastlane": "deploy, release, deliver, supply, pilot, beta, * release, * deploy",
    "eas": "submit, update",
    "supabase": "db push, functions deploy, db reset",
    "shopify": "app deploy, theme push",
    **dict.fromkeys(("docker", "podman", "nerdctl"), "push, image push, compose push, manifest push"),
    **dict.fromkeys(("buildah", "docker-compose"), "push"),
    "skopeo": "copy, delete, sync",
    "crane": "push, copy, delete, append",
    "oras": "push, copy",
    **dict.fromkeys(
        ("npm", "pnpm"), "publish, unpublish, deprecate, dist-tag add, dist-tag rm, owner add, owner rm, access *"
    ),
    "yarn": "publish, npm publish, npm tag",
    "deno": "publish, deploy",
    "deployctl": "deploy",
    "vsce": "publish, unpublish",
    "cargo": "publish, yank, owner *",
    "twine": "upload, register",
    "maturin": "publish, upload",
    "setup.py": "upload, register, * upload",
    "gem": "push, yank, owner",
    "rake": "release",
    "nuget": "push, delete",
    "dotnet": "nuget push, nuget delete",
    "mvn": "deploy, deploy:deploy, release:perform, release:prepare, * deploy, * * deploy, * release:perform",
    **dict.fromkeys(("gradle", "gradlew"), "publish, publishPlugins, uploadArchives, * publish"),
    "sbt": "publish, publishSigned, +publish",
    "goreleaser": "release, publish",
    **dict.fromkeys(("conan", "huggingface-cli"), "upload"),
    "pod": "trunk push, trunk delete",
    "mix": "hex.publish",
    **dict.fromkeys(("dart", "flutter"), "pub publish"),
    "hf": "upload, upload-large-folder",
    "gh": (
        "pr merge, release create, release delete, release upload, release edit, repo delete, repo create, "
        "repo edit, repo archive, repo rename, workflow run, workflow disable, secret set, secret delete, "
        "variable set, variable delete, run rerun, issue delete"
    ),
    "glab": "mr merge, release create, release delete, release upload, repo delete, ci run, variable set",
    **dict.fromkeys(("bun", "lerna", "changeset", "jsr", "ovsx", "flit", "poetry", "hatch", "uv", "pdm"), "publish"),
    **dict.fromkeys(("now", "gh-pages", "semantic-release", "np", "release-it"), "-"),
    **dict.fromkeys(("dokku", "ansible-playbook", "ansible", "cargo-release"), "*"),
}
"""Program -> what makes it one that changes what others use: each way is words in this order, after any options that
stand before them; `*` is any one word or ending, `-` alone is no words at all."""

_RUNNERS = {"make": (), "gmake": (), "just": (), "task": (), "inv": (), "invoke": (), "npm": ("run",), "pnpm": ("run",),
            "yarn": ("run", ""), "bun": ("run",), "composer": ("run-script",), "nox": ("-s",)}  # fmt: skip
"""Programs that run targets of the project's own, and the word that must stand before the target."""

_VALUES = frozenset({
    "-n", "--namespace", "--context", "--kubeconfig", "--cluster", "-s", "--server", "--kube-context", "--project",
    "--account", "--configuration", "--region", "-H", "--host", "-c", "--config", "-l", "--log-level", "--profile",
    "--endpoint-url", "--output", "--prefix", "-C", "-w", "--workspace", "--registry", "--dir", "--filter", "-F",
    "--cwd", "--manifest-path", "-Z", "--color", "-R", "--repo", "--token", "-t", "--scope", "-a", "--app", "-f",
    "--file", "-p", "--subscription", "--stack", "--env", "--environment", "--stage",
})  # fmt: skip
"""Options of these programs that take a value, where they stand before the words that count."""

_REMOTE = {"ssh": "", "sftp": "", "mosh": "", "scp": ":", "rsync": ":", "lftp": "", "ftp": "", "rclone": ":"}
"""Programs that reach other machines, and what stands in an argument that names one (empty: any argument does)."""


def find_deployment(program: str, args: Sequence[str]) -> str:  # noqa: PLR0911  one line per kind of program
    """Return the part of *program* with *args* that changes what others use, or empty."""
    if any(word.partition("=")[0] in DRY and not word.endswith(("=none", "=false")) for word in args):
        return ""
    if program in _REMOTE:
        return _find_remote(program, args)
    readings = _list_plain_words(args, _VALUES), _list_plain_words(args, frozenset())
    for way in (tuple(said.split()) for said in TABLE.get(program, "").split(", ")):
        if way == ("-",) and not readings[1]:
            return program
        if fitting := next((plain for plain in readings if way and _is_match(way, plain)), ()):
            return f"{program} {' '.join(fitting[: len(way)])}"
    if program == "vercel" and "--prod" in args:
        return "vercel --prod"
    if program in ("docker", "podman") and "--push" in args:
        return f"{program} build --push"
    if program == "gh" and readings[1][:1] == ("api",) and _has_change_method(args):
        return "gh api with a method that changes things"
    return _find_target(program, args, readings[1])


def _list_plain_words(args: Sequence[str], values: frozenset[str]) -> tuple[str, ...]:
    rest, plain = iter(args), list[str]()
    for word in rest:
        if word in values and not plain:
            next(rest, "")
        elif not word.startswith(("-", "+")) and (plain or word not in ("alpha", "beta", "preview")):
            plain.append(word)
    return tuple(plain)


def _is_match(way: tuple[str, ...], plain: tuple[str, ...]) -> bool:
    return len(plain) >= len(way) and all(
        part == word or (part.endswith("*") and word.startswith(part[:-1]))
        for part, word in zip(way, plain, strict=False)
    )


def _find_remote(program: str, args: Sequence[str]) -> str:
    named = [word for word in args if not word.startswith("-")]
    mark = _REMOTE[program]
    if program == "ssh" and {"-V", "-G", "-Q"} & set(args):
        return ""
    remote = [word for word in named if mark in word and not word.startswith(("/", "./", ":"))]
    return f"{program} to another machine" if remote else ""


def _has_change_method(args: Sequence[str]) -> bool:
    joined = " ".join(args).upper()
    fields = {"-f", "-F", "--field", "--raw-field", "--input"} & {word.partition("=")[0] for word in args}
    changing = any(f"{o}{m}" in joined for o in ("-X", "-X ", "--METHOD ", "--METHOD=") for m in ("P", "DEL"))
    return changing or (bool(fields) and "GET" not in joined)


def _find_target(program: str, args: Sequence[str], plain: tuple[str, ...]) -> str:
    """Return a target of the project's own that says by its name that it deploys."""
    before = _RUNNERS.get(program)
    if before is None or (program in ("make", "gmake") and "-n" in args):
        return ""
    if before and plain[:1] == (before[0],):
        targets = plain[1:2]
    elif before and "" not in before:
        return ""
    else:
        targets = plain
    named = next((t for t in targets if re.split("[:_-]", t)[0] in ("deploy", "publish")), "")
    return f"{program} {' '.join((*(before[:1] if before else ()), named))}" if named else ""
