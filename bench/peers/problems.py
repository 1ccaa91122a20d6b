"""problems - the table of what is measured: reads it, and knows how much there is to compute."""


LONG = ("deepbench", "nets")  # groups that --quick leaves out, and that are asked for by name alone


def expand(words):
    """A word of several parts, divided by commas, is a problem for each."""
    if not words:
        return [[]]
    return [[part, *rest] for part in words[0].split(",") for rest in expand(words[1:])]


class Problem:
    def __init__(self, group, words):
        self.group, self.words = group, words
        self.sort, self.text = words[0], " ".join(words)

    def flop(self):
        """Operations of one call, multiplications and additions counted; None where that is not known."""
        if self.sort == "gemm":
            m, n, k = map(int, self.words[2:5])
            return 2 * m * n * k
        if self.sort == "conv":
            batch, inputs, side, outputs, kernel, stride, pad, groups = map(int, self.words[3:11])
            after = (side + 2 * pad - kernel) // stride + 1
            return 2 * batch * after * after * outputs * kernel * kernel * (inputs // groups)
        return None

    def bytes(self):
        """What a contender holds of it, about."""
        if self.sort == "gemm":
            m, n, k = map(int, self.words[2:5])
            return 4 * (m * n + n * k + m * k)
        if self.sort == "conv":
            batch, inputs, side, outputs, _, stride, *_ = map(int, self.words[3:11])
            return 4 * batch * (side * side * inputs + (side // stride) ** 2 * outputs)
        return 0

    def sum_up(self):
        """What it is averaged with: the group, its sort where that is another word, the type, of convolutions the direction."""
        sort = [] if self.sort == self.group else [self.sort]
        return " ".join([self.group, *sort, *self.words[1 : 3 if self.sort == "conv" else 2]])


LENGTHS = {"gemm": 6, "conv": 11, "train": 4, "infer": 4}
DIRECTIONS, TRANSPOSED = ("forward", "data", "weights"), ("nn", "tn", "nt", "tt")
PAD = 6  # the seventh number of a convolution, which may be 0


def mistake(problem):
    """What is wrong with the words of a problem that has as many as it should; "": nothing."""
    words = problem.words
    if problem.sort == "gemm" and words[5] not in TRANSPOSED:
        return f"{words[5]} is none of {' '.join(TRANSPOSED)}"
    if problem.sort == "conv" and words[2] not in DIRECTIONS:
        return f"{words[2]} is none of {' '.join(DIRECTIONS)}"
    numbers = words[2:5] if problem.sort == "gemm" else words[3:]
    for i, word in enumerate(numbers):
        if not word.isdecimal() or int(word) < (0 if problem.sort == "conv" and i == PAD else 1):
            return f"{word} is no number, or too small"
    if problem.sort == "conv" and int(numbers[2]) + 2 * int(numbers[PAD]) < int(numbers[4]):
        return "the window is larger than the image"
    return ""


def read(path):
    problems = []
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            words = line.split("#")[0].split()
            if not words:
                continue
            for group, *one in expand(words):
                if LENGTHS.get(one[0] if one else "") != len(one):
                    raise ValueError(f"{path}:{number}: no problem: {' '.join(one)}")
                problem = Problem(group, one)
                if "/" in group:
                    raise ValueError(f"{path}:{number}: a group becomes the name of a file, and has no /: {group}")
                if mistake(problem):
                    raise ValueError(f"{path}:{number}: {' '.join(one)}: {mistake(problem)}")
                problems.append(problem)
    return problems
