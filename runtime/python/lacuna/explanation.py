"""check, explain and specs: what the compiler says of a spec, without running it."""

from typing import Any

from . import command, words
from .spec import SpecLike, shipped, spec_of


class Explanation:
    """Every decision of the compiler: prints as `lacuna explain` does; `plans` has the same as data, one for each
    architecture: {target, head_dim, dtype, values: [{name, value, origin, reason}], ...}."""

    def __init__(self, text: str, plans: list[dict]):
        self.text, self.plans = text, plans

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def __getitem__(self, name: str) -> str:
        """The value of one decision, in the first plan."""
        values = {value["name"]: value["value"] for value in self.plans[0]["values"]} if self.plans else {}
        if name not in values:
            near = words.nearest(name, values)
            raise KeyError(f"no decision {name!r}" + (f"; did you mean {near!r}?" if near else f"; there are {', '.join(values)}"))
        return values[name]


class SpecTable(dict):
    """name -> {does, doc, source, params, path}; prints as a table."""

    def __repr__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:{width}}  {entry['does']}" + (f"; {', '.join(entry['params'])}" if entry["params"] else "")
                         for name, entry in self.items())

    __str__ = __repr__


def check(spec: SpecLike, *, arch: str | None = None) -> list[dict]:
    """Warnings of a spec that is good, as dicts; raises SpecError with every error of one that is not.

    arch: "sm_90a,sm_120a" or "cpu" that it has to fit; None: any GPU."""
    return command.call("check", "-", *(["--arch", arch] if arch else []), spec=spec_of(spec))["diagnostics"]


def explain(subject: SpecLike, *, arch: str | None = None, head_dim: int | None = None, dtype: str | None = None,
            shape: str | None = None, batch: str | None = None, gpus: int | None = None, layout: str | None = None,
            stripe: int | None = None, head_dim_v: int | None = None, kv: str | None = None, relief: int | None = None,
            cache_directory: str | None = None) -> Explanation:
    """Every decision of the compiler for a spec, with its origin; or what an error code ("E0203") means.

    arch: architectures (sm_90a); shape: "b=1,h=24,n=119056", at which memory is counted, and for which tuned tiles are chosen (else those of the largest
    problem that was tuned, of cache_directory if that is another); batch: "uniform", "sequences" or "pages"; kv: "same" or
    "e4m3"; relief: how far down the ladder of plans for fewer registers, as `Kernel.info` has it.
    gpus: also how so many would share the problem, as `plans[0]["group"]`: what `Plan.table` of a group has; layout, stripe:
    what its ranks hold, as `Group.plan` has it. head_dim_v: of v and o, where it differs."""
    words = [word for name, value in (("--arch", arch), ("--head-dim", head_dim), ("--dtype", dtype), ("--shape", shape), ("--batch", batch),
                                      ("--gpus", gpus), ("--layout", layout), ("--stripe", stripe), ("--head-dim-v", head_dim_v), ("--kv", kv), ("--relief", relief))
             if value is not None for word in (name, str(value))]
    if isinstance(subject, str) and subject[:1] == "E" and subject[1:].isdigit():
        return Explanation(command.text_of("explain", subject), [])
    spec = spec_of(subject)
    document: dict[str, Any] = command.call("explain", "-", *words, spec=spec, cache_directory=cache_directory)
    return Explanation(command.text_of("explain", "-", *words, spec=spec, cache_directory=cache_directory), document["plans"])


def specs(folder: str | None = None) -> SpecTable:
    """The specs that come along (or of a folder), by name: each is a `spec=` of the other functions."""
    if folder is not None:
        return SpecTable({entry["name"]: entry for entry in command.call("list", folder)["specs"]})
    folders = sorted({str(path.parent) for path in shipped().values()}, key=len)
    return SpecTable({entry["name"]: entry for folder in folders for entry in command.call("list", folder)["specs"]})
