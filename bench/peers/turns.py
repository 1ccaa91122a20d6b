"""turns - runners, of which one works at a time, and the rounds in which they take turns.

Owns the processes: between its turns a runner's whole process group is stopped, so threads that spin or sleep there
are in nobody's way. Times are the runners' own. Knows neither what is measured nor who is compared with whom.
"""
import ctypes
import os
import select
import signal
import subprocess
import time

TURN = 0.02  # seconds that a turn lasts at least
LONG = 0.1  # of a call that needs no other before it to warm up
CALLS_MOST = 10**9  # of a turn: whatever there is to measure takes more than 20 ps
TRIAL = 3  # rounds at least, before a peer's ways are told apart
BEATEN = 10  # times as long as ours: of long calls the first says enough
CHANCES = 2  # so often a runner may fail before it is not started again
LEFT = "left after a third of the rounds: not the best"  # the reason of whoever was sent away


class Failed(Exception):
    """A runner died, hung or answered what is no answer; the text says which."""


class Cannot(Exception):
    """A runner says that it does not do that."""


def on_our_death_die():
    """In a child: a driver that is killed leaves nobody stopped for ever."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def beside(count, cpus):
    """Processes that each keep a core busy, on these."""
    def child():
        on_our_death_die()
        os.sched_setaffinity(0, cpus)
    return [subprocess.Popen(["sh", "-c", "while :; do :; done"], preexec_fn=child) for _ in range(count)]


class Runner:
    def __init__(self, name, command, env=None, log=None, patience=600, cpus=None):
        self.name, self.command, self.env, self.log = name, command, env or {}, log
        self.patience, self.cpus = patience, cpus
        self.process = None
        self.about = self.absent = ""
        self.failures = []

    def start(self):
        """True: it is there and stopped."""
        if self.process:
            return True
        if self.absent or len(self.failures) >= CHANCES:
            return False

        def child():
            on_our_death_die()
            if self.cpus:
                os.sched_setaffinity(0, self.cpus)

        try:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=self.log or subprocess.DEVNULL, env={**os.environ, **self.env}, start_new_session=True,
                preexec_fn=child)
        except OSError as error:
            self.absent = f"{self.command[0]}: {error.strerror}"
            return False
        self.pending = b""
        try:
            word, text = self.read("to start")
        except Failed:
            return False
        if word == "absent":
            self.absent = text
            self.end()
            return False
        if word != "ready":
            self.fail(f'answered "{word} {text}" to being started')
            return False
        self.about = text
        self.stop()
        return True

    def end(self):
        if self.process:
            for number in (signal.SIGKILL, signal.SIGCONT):
                try:
                    os.killpg(self.process.pid, number)
                except ProcessLookupError:
                    pass
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
            self.process = None

    def stop(self):
        os.killpg(self.process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def fail(self, text):
        self.end()
        self.failures.append(text)
        raise Failed(text)

    def read(self, what):
        """The first word of the next line, and the rest of it."""
        until = time.monotonic() + self.patience
        out = self.process.stdout.fileno()
        while b"\n" not in self.pending:
            if not select.select([out], [], [], max(0, until - time.monotonic()))[0]:
                self.fail(f"no answer to {what} in {self.patience:g} s")
            piece = os.read(out, 65536)
            if not piece:
                try:
                    code = self.process.wait(max(0, until - time.monotonic()))
                except subprocess.TimeoutExpired:
                    self.fail(f"says no more, but has not ended, when asked {what}")
                self.fail(f"was ended by signal {-code} ({signal.Signals(-code).name}) when asked {what}" if code < 0
                          else f"ended with exit code {code} when asked {what}")
            self.pending += piece
        line, self.pending = self.pending.split(b"\n", 1)
        word, _, text = line.decode("utf-8", "replace").strip().partition(" ")
        return word, text.strip()

    def ask(self, line, wanted):
        """Goes on, answers, is stopped. The text behind the word that is wanted."""
        os.killpg(self.process.pid, signal.SIGCONT)
        try:
            os.write(self.process.stdin.fileno(), line.encode() + b"\n")
        except BrokenPipeError:
            pass  # what became of it is read below
        word, text = self.read(f'"{line}"')
        if word == "cannot" and wanted == "ok":
            self.stop()
            raise Cannot(text)
        if word != wanted:
            self.fail(f'answered "{word} {text}" to "{line}"')
        self.stop()
        return text

    def seconds(self, slot, times):
        text = self.ask(f"run {slot} {times}", "took")
        try:
            value = float(text)
        except ValueError:
            value = -1
        if not 0 < value < 1e6:
            self.fail(f'answered "took {text}" to "run {slot} {times}"')
        return value


class Contender:
    """A runner's way of doing a problem."""

    def __init__(self, runner, variant="-", slot=0, instead=None):
        self.runner, self.variant, self.slot = runner, variant, slot
        self.instead = instead  # a problem of its own, whatever the others do
        self.name = runner.name if variant == "-" else f"{runner.name}, {variant}"
        self.calls, self.times, self.text, self.why = 0, [], "", ""

    def prepare(self, problem):
        """False, with why: it takes no part."""
        self.calls, self.times, self.text, self.why = 0, [], "", ""
        try:
            if not self.runner.start():
                self.why = self.runner.absent or self.runner.failures[-1]
                return False
            self.text = self.runner.ask(f"prepare {self.slot} {self.variant} {self.instead or problem}", "ok")
            return True
        except (Cannot, Failed) as error:
            self.why = str(error)
            return False

    def enough(self, seconds):
        """How many calls a turn takes, when these many took so long."""
        if seconds < TURN:
            self.calls = min(CALLS_MOST, int(self.calls * min(4, 1.1 * TURN / seconds)) + 1)

    def calibrate(self):
        """How long a call takes, of the first three: memory is new, code is compiled. How many calls make a turn."""
        try:
            self.once = self.runner.seconds(self.slot, 1)
            for _ in range(2 if self.once < 10 * LONG else 0):
                self.once = min(self.once, self.runner.seconds(self.slot, 1))
            self.calls, took = 1, self.once
            while took < TURN:
                if self.calls == CALLS_MOST:
                    self.runner.fail(f"says that {self.calls} calls take {took:g} s")
                self.enough(took)
                took = self.runner.seconds(self.slot, self.calls)
            return True
        except Failed as error:
            self.why = str(error)
            return False

    def turn(self):
        """A turn that was too short, since something else had held up those before, makes the next one longer."""
        try:
            if self.once < LONG:
                self.runner.seconds(self.slot, 1)
            took = self.runner.seconds(self.slot, self.calls)
            self.times.append(took / self.calls)
            self.enough(took)
        except Failed as error:
            self.why = str(error)


def hopeless(contender, peers, medians, slack=1.25):
    """Whether it is no peer's best: in each that it is part of, another is faster by more than runs differ."""
    groups = [group for group in peers.values() if contender in group]
    return bool(groups) and all(medians[contender] > slack * min(medians[c] for c in group if c in medians)
                                for group in groups)


def measure(problem, contenders, peers, rounds, rng, median, longest, ours_longest):
    """Fills in each contender's times, one for each round. The first contender is the one that others are compared
    with: without it nothing is measured, nor where it takes longer than `ours_longest` seconds. A peer that takes
    longer than `longest`, and many times as long as it, is no contest that is worth minutes. Of a peer's several ways
    those that are clearly not its best leave after a third of the rounds. `why` of whoever lacks times says why."""
    for runner in {c.runner for c in contenders}:
        if runner.process:
            try:
                runner.ask("drop", "ok")
            except Failed:
                pass  # it has another chance
    ready = []
    for contender in contenders:
        if contender.prepare(problem) and contender.calibrate():
            if ready and contender.once > max(longest, BEATEN * ready[0].once):
                contender.why = f"a call takes {contender.once:.1f} s, {contender.once / ready[0].once:.0f} times ours"
            else:
                ready.append(contender)
        if contender is contenders[0] and (not ready or contender.once > ours_longest):
            contender.why = contender.why or f"a call takes {contender.once:.1f} s"
            return
    trial = max(TRIAL, rounds // 3)
    for number in range(rounds):
        if number == trial:
            medians = {c: median(c.times) for c in ready}
            out = [c for c in ready[1:] if hopeless(c, peers, medians)]
            for contender in out:
                contender.why = LEFT
            ready = [c for c in ready if c not in out]
        order = list(ready)
        rng.shuffle(order)
        for contender in order:
            if not contender.why:
                contender.turn()
        ready = [c for c in ready if not c.why]
        if contenders[0] not in ready:
            return
