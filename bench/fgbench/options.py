# SPDX-License-Identifier: MIT
"""Values of options that the commands share."""
import argparse


def positive(kind, what, most=999_999_999):
    def parse(text):
        try:
            value = kind(text)
        except ValueError:
            value = 0
        if not 0 < value <= most:  # nan is neither
            raise argparse.ArgumentTypeError(
                f"{what} of more than 0, at most {most:,}, is wanted, not '{text}'")
        return value
    return parse


count = positive(int, "a number")
seconds = positive(float, "a number of seconds")
minutes = positive(float, "a number of minutes")


def whole(text):
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"a number is wanted, not '{text}'") from None


def name(text):
    if not text:
        raise argparse.ArgumentTypeError("it has no value")
    return text


def counts(text):
    one = positive(int, "a list of numbers", 1 << 22)  # the kernel has no more threads
    return sorted({one(x) for x in text.split(",")})
