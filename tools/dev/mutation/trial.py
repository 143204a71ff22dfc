"""One mutant after the other: apply, build what depends on it, ask one suite after the other until one of them finds it."""

import math
import os
import re
import shutil
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from mutation.kernels import KernelProgram, batches
from mutation.process import TIMED_OUT, sh, spent_s
from mutation.suites import KERNELS, OPENS, TIERS, built_by, failed_test, likely_tests, order_of, suites_of
from mutation.tree import Tree

# How long a suite may take: a hang is a finding, a busy machine is none.
LEAST_LIMIT_S, LIMIT_RATIO, LONGEST_SUITE_S = 60, 6, 3600
BUSY_RATIO = 6

END_OF_RUN = "end of the run"

FOUND, SURVIVED, INVALID, EQUIVALENT, UNDECIDED = "found", "survived", "invalid", "equivalent", "undecided"


class Verdict(Exception):
    """Ends a trial: `fields` are what is known of the mutant now."""

    def __init__(self, result, **more):
        super().__init__(result)
        self.fields = {"result": result, **more}


@dataclass(frozen=True)
class Answer:
    is_good: bool
    test: str      # that failed, or was running at the end of its time
    seconds: float
    has_end: bool = True


class Lab:
    """The tree, its suites and what they take without a mutant."""

    def __init__(self, origin, folder, baselines, say, jobs=None):
        self.tree, self.scratch, self.say = Tree(origin, folder, TIERS, jobs), Path(folder) / "scratch", say
        self.baselines = baselines  # "tier entry filter" -> seconds, or None where it fails without any mutant
        self.fingerprints, self.programs = {}, {}  # of what is built without a mutant, by tier and suite
        self.tree.synchronise()
        self.suites = {}
        for tier, build in self.tree.builds.items():
            build.configure()
            self.suites[tier] = suites_of(build.folder)

    def order(self, path):
        """(tier, suite) in the order in which they are asked about a change of `path`."""
        for tier, suites in self.suites.items():
            for name in order_of(path, suites):
                if not TIERS[tier].entries or name in TIERS[tier].entries:
                    yield tier, name

    def ask(self, suite, tier, limit_s, program=None, chosen=None):
        """Runs a suite; with another program in place of its own, and only the tests of a filter, where these are given."""
        shutil.rmtree(self.scratch / "home", ignore_errors=True)
        (self.scratch / "home/tmp").mkdir(parents=True)
        home = str(self.scratch / "home")
        environment = {**os.environ, **suite.environment, **TIERS[tier].environment, "HOME": home, "TMPDIR": f"{home}/tmp",
                       "XDG_CACHE_HOME": f"{home}/cache", "LACUNA_CACHE_DIR": f"{home}/kernels", "GTEST_FAIL_FAST": "1"}
        command = list(suite.command)
        if program:
            command[0] = str(program)
        if chosen and suite.is_googletest:
            own = [word for word in command if word.startswith("--gtest_filter=")]
            without = own[0].partition("=")[2].partition("-")[2] if own else ""
            command = [word for word in command if word not in own] + [f"--gtest_filter={chosen}" + (f"-{without}" if without else "")]
        begin = time.monotonic()
        done = sh(command, cwd=suite.folder, env=environment, timeout_s=limit_s)
        seconds = time.monotonic() - begin
        test = failed_test(done.stdout) if done.returncode else ""
        has_end = done.returncode != TIMED_OUT
        return Answer(done.returncode == 0, test, seconds, has_end)

    def prepare(self, tier, name, patience_s):
        """Builds a suite without a mutant; False where that takes more time than there is. What is built stays."""
        build, target = self.build(tier, name), self.suites[tier][name].target
        if not build.is_current(target):
            self.say(f"building {target} of the {built_by(tier, name)} tier without a mutant")
        built = build.make(target, patience_s)
        if not built.has_end:
            return False
        if not built.is_good:
            raise SystemExit(f"{target} does not build without a mutant:\n{built.output[-3000:]}")
        if build != self.tree.builds[tier]:
            self._link_program(build, self.tree.builds[tier], target)
        # A program that a mutant left without is known from before.
        self.suites[tier] |= {name: suite for name, suite in suites_of(self.tree.builds[tier].folder).items() if suite.command}
        self.fingerprints[tier, name] = self.fingerprint(tier, name)
        if name in KERNELS:
            self.programs[tier, name] = KernelProgram(build, self.suites[tier][name], KERNELS[name])
        return True

    def build(self, tier, name):
        """The build that makes the programs of a suite."""
        return self.tree.builds[built_by(tier, name)]

    @staticmethod
    def _link_program(build, other, target):
        """ctest names a command only where its program is: so that of `build` is there for the other one, too."""
        link = other.folder / "bin" / target
        if not link.is_symlink():
            link.parent.mkdir(exist_ok=True)
            link.symlink_to(build.folder / "bin" / target)

    def fingerprint(self, tier, name):
        """Of what a suite runs."""
        return self.build(tier, name).fingerprint((Path(self.suites[tier][name].command[0]).name, *OPENS.get(name, ())))

    @staticmethod
    def label(tier, name, chosen=""):
        return " ".join((tier, name, chosen)).strip()

    def measure(self, tier, name, chosen="", patience_s=math.inf):
        """What a suite takes without a mutant, if that is no more than `patience_s`. One that fails then says nothing about any."""
        label, limit_s = self.label(tier, name, chosen), LONGEST_SUITE_S
        answer = self.ask(self.suites[tier][name], tier, min(limit_s, patience_s), chosen=chosen)
        if not answer.has_end and patience_s < limit_s:
            return
        self.baselines[label] = round(answer.seconds, 1) if answer.is_good else None
        self.say(f"{label}: {answer.seconds:.0f} s without a mutant" if answer.is_good else
                 f"{label}: fails without a mutant ({answer.test}), and is not asked")

    def limit(self, tier, name, chosen=""):
        takes_s = self.baselines.get(self.label(tier, name, chosen))
        return LONGEST_SUITE_S if takes_s is None else max(LEAST_LIMIT_S, LIMIT_RATIO * takes_s)


class Trial:
    """`end`: of the whole run. `patience_s`: processor seconds that the mutant may take; it is asked between two steps, so that
    what a step found is kept. What is built and measured without the mutant serves all others, too, and takes nothing of it."""

    def __init__(self, lab, mutant, end=math.inf, patience_s=math.inf, asked=(), without=(), tier=None):
        self.lab, self.mutant, self.end, self.without, self.tier = lab, mutant, end, without, tier
        self.most_s = spent_s() + patience_s
        self.left_out = []  # suites that might have found it
        self.asked = list(asked)  # "tier suite" of those that found nothing, earlier ones too
        self.built = None  # (build, target) of what was built of the mutant; None while it is not applied
        self.applied = ExitStack()
        self.has_other_code = False  # than without the mutant: nobody has looked yet

    def judge(self):
        """What is to be recorded of the mutant."""
        begin = time.monotonic()
        try:
            if not self.asked:
                self._look_at_objects()
            first = next(iter(self.lab.suites))
            for tier, name in self.lab.order(self.mutant.file):
                if tier != first:
                    self._look_at_code()
                if self.lab.label(tier, name) in self.asked:
                    continue
                if name in self.without or self.tier not in (None, tier):
                    self.left_out.append(self.lab.label(tier, name))
                    continue
                self._left()
                if name in KERNELS and self.mutant.file.startswith("templates/"):
                    self._ask_kernels(tier, name)
                elif self._depends(tier, name) and self._build(tier, name):
                    self._ask(tier, name)
            # Of programs that stay as they are, byte by byte, nothing can be said.
            fields = {"result": UNDECIDED, "reason": f"not asked: {', '.join(self.left_out)}"} if self.left_out else {
                "result": SURVIVED if self.asked else EQUIVALENT}
        except Verdict as verdict:
            fields = verdict.fields
        finally:
            self._restore()
        return {**fields, "asked": self.asked, "seconds": round(time.monotonic() - begin, 1)}

    def _left(self):
        """Seconds until the end of the run."""
        if spent_s() > self.most_s:
            raise Verdict(UNDECIDED, reason="out of patience")
        left_s = self.end - time.monotonic()
        if left_s <= 0:
            raise Verdict(UNDECIDED, reason=END_OF_RUN)
        return left_s

    def _apply(self):
        if self.built is None:
            self.applied.enter_context(self.lab.tree.mutated(self.mutant))
            self.built = set()

    def _look_at_objects(self):
        """What does not compile nobody has to be asked about."""
        self._apply()
        built = next(iter(self.lab.tree.builds.values())).compiled(self.mutant.file, self._left())
        if built and not built.has_end:
            raise Verdict(UNDECIDED, reason=END_OF_RUN)
        if built and not built.is_good:
            raise Verdict(INVALID, error=first_error(built.output))

    def _look_at_code(self):
        """What leaves the machine code of a release as it is, byte by byte, nobody else has to be asked about. Looked at once, where the
        first tier has found nothing: it costs as much as compiling it twice."""
        if self.has_other_code:
            return
        self.has_other_code = True
        self._restore()
        if next(iter(self.lab.tree.builds.values())).has_same_code(self.mutant):
            raise Verdict(EQUIVALENT)

    def _restore(self):
        self.applied.close()
        self.built = None

    def _prepare(self, tier, name):
        """Builds a suite without the mutant."""
        self._left()
        self._restore()
        before_s = spent_s()
        is_built = self.lab.prepare(tier, name, max(0, self.end - time.monotonic()))
        self.most_s += spent_s() - before_s
        if not is_built:
            raise Verdict(UNDECIDED, reason=END_OF_RUN)

    def _know(self, tier, name, chosen=""):
        """Measures a suite without the mutant, once."""
        label = self.lab.label(tier, name, chosen)
        if label not in self.lab.baselines:
            self._prepare(tier, name)
            before_s = spent_s()
            self.lab.measure(tier, name, chosen, max(0, self.end - time.monotonic()))
            self.most_s += spent_s() - before_s
        if label not in self.lab.baselines:
            raise Verdict(UNDECIDED, reason=END_OF_RUN)

    def _depends(self, tier, name):
        """Whether a suite has to be built anew."""
        if (tier, name) not in self.lab.fingerprints:
            self._prepare(tier, name)
        self._apply()
        target = self.lab.suites[tier][name].target
        return (built_by(tier, name), target) in self.built or not self.lab.build(tier, name).is_current(target)

    def _build(self, tier, name):
        """Whether the suite has another program now. One that the mutant leaves as it was finds nothing."""
        self._apply()
        target = self.lab.suites[tier][name].target
        built = self.lab.build(tier, name).make(target, self._left())
        self.built.add((built_by(tier, name), target))
        if not built.has_end:
            raise Verdict(UNDECIDED, reason=END_OF_RUN)
        if not built.is_good:
            if built.has_run_products and not self.mutant.file.startswith("templates/"):
                raise Verdict(FOUND, tier=tier, suite=name, test="its build: what the command emits")
            raise Verdict(INVALID, error=first_error(built.output))
        return self.lab.fingerprint(tier, name) != self.lab.fingerprints[tier, name]

    def _ask(self, tier, name, program=None, chosen=""):
        label = self.lab.label(tier, name, chosen)
        # A program that the tier before has asked without hanging is asked at once. Longer suites take as long without a mutant as
        # with one: that is looked at only where one fails.
        is_unknown = label not in self.lab.baselines and built_by(tier, name) != tier
        if not is_unknown:
            self._know(tier, name, chosen)
        takes_s = 0 if is_unknown else self.lab.baselines[label]
        if takes_s is None:
            self._leave_out(tier, name)
            return
        if not program:
            self._build(tier, name)  # again, where it had to be measured
        likely = "" if chosen else likely_tests(self.lab.tree.root, name, self.mutant.file)
        answer = self._run(tier, name, program, likely) if likely else None
        if answer is None or answer.is_good:
            if takes_s > self._left():
                raise Verdict(UNDECIDED, reason=END_OF_RUN)
            answer = self._run(tier, name, program, chosen)
        if not answer.is_good:
            if is_unknown and self._fails_without(tier, name, answer.test):
                self._leave_out(tier, name)
                return
            raise Verdict(FOUND, tier=tier, suite=name, test=answer.test + ("" if answer.has_end else " (no end)"))
        self.lab.baselines.setdefault(label, round(answer.seconds, 1))
        if not chosen:
            self.asked.append(label)

    def _leave_out(self, tier, name):
        self.left_out.append(f"{self.lab.label(tier, name)} (fails without a mutant)")

    def _fails_without(self, tier, name, test):
        """Of a suite that nobody has measured: does the test fail without the mutant, too?"""
        self._prepare(tier, name)
        answer = self.lab.ask(self.lab.suites[tier][name], tier, LONGEST_SUITE_S, chosen=test)
        if not answer.is_good:
            self.lab.baselines[self.lab.label(tier, name)] = None
        return not answer.is_good

    def _run(self, tier, name, program, chosen):
        label = self.lab.label(tier, name, chosen)
        limit_s = self.lab.limit(tier, name, chosen if label in self.lab.baselines else "")

        def ask(limit_s, chosen):
            left_s = self._left()
            answer = self.lab.ask(self.lab.suites[tier][name], tier, min(limit_s, left_s), program, chosen)
            if not answer.has_end and left_s < limit_s:
                raise Verdict(UNDECIDED, reason=END_OF_RUN)
            return answer

        answer = ask(limit_s, chosen)
        if not answer.has_end:
            # A machine that is busy with others takes longer, but what hangs does so alone, too.
            alone = ask(limit_s, answer.test)
            answer = ask(BUSY_RATIO * limit_s, chosen) if alone.is_good else alone
        return answer

    def _ask_kernels(self, tier, name):
        if (tier, name) not in self.lab.programs:
            self._prepare(tier, name)
        program, folder = self.lab.programs[tier, name], self.lab.scratch / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        changed = {}
        for batch in batches(program.kernels_with(self.mutant.file)):
            self._left()
            self._apply()
            here, error = program.compile(batch, folder)
            if error:
                raise Verdict(INVALID, error=first_error(error))
            changed |= here
            if filters := sorted({program.filter_of(output) for output in here} - {""}):
                self._link(program, here, folder / "program")
                for chosen in filters:
                    self._ask(tier, name, folder / "program", chosen)
        if changed:  # tests of several kernels
            self._link(program, changed, folder / "program")
            self._ask(tier, name, folder / "program")

    @staticmethod
    def _link(program, changed, target):
        if not program.linked(changed, target):
            raise Verdict(INVALID, error="does not link")


def first_error(output):
    return (re.search(r"error: .*", output) or [output[-300:]])[0][:300]
