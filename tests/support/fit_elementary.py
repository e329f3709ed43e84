#!/usr/bin/env python3
"""Fits the polynomials of stages/elementary.h and prints their coefficients and errors.

Each is a minimax fit (Lawson's iteratively reweighted least squares in double precision); coefficients are then rounded
to float32 one after another, from the lowest power on. After each the rest is fitted again, which compensates the
rounding. Needs NumPy.
"""
import numpy as np


def lawson(basis, target, weight, rounds=400):
    """Returns coefficients that (nearly) minimise the largest |basis @ c - target| * weight."""
    if basis.shape[1] == 0:
        return np.zeros(0)
    w = np.ones(len(target))
    best, best_error = None, np.inf
    for _ in range(rounds):
        s = np.sqrt(w) * weight
        c = np.linalg.lstsq(basis * s[:, None], target * s, rcond=None)[0]
        e = np.abs(basis @ c - target) * weight
        if e.max() < best_error:
            best, best_error = c, e.max()
        w = w * (e / e.max() + 1e-3)
        w /= w.sum()
    return best


def fit(name, function, low, high, powers, weight=lambda x, f: 1.0 / np.abs(f)):
    """Fits sum c_p x^p over the powers. weight: weight of the error (default: relative)."""
    n = 2000
    x = 0.5 * (low + high) + 0.5 * (high - low) * np.cos(np.pi * (np.arange(n) + 0.5) / n)
    f = function(x)
    w = weight(x, f) * np.ones(n)
    done = np.zeros(n)
    out = []
    for i, p in enumerate(powers):
        basis = np.stack([x ** q for q in powers[i:]], 1)
        c = lawson(basis, f - done, w)
        value = np.float32(c[0])
        out.append(value)
        done = done + np.float64(value) * x ** p
    error = np.max(np.abs(done - f) * w)
    print(f'{name}: error {error:.3g}')
    for p, c in zip(powers, out):
        print(f'  x^{p}: {c:.9g}f')


def atan_turns_over_t(z):
    t = np.sqrt(z)
    return np.where(z < 1e-12, 1 / (2 * np.pi), np.arctan(t) / (2 * np.pi * np.maximum(t, 1e-30)))


def fit_reciprocal():
    """Fits the two constants that minimise the largest error: `magic` of the guess, magic - bits of x, and c of the step,
    r (c - x r)."""
    x = np.linspace(1, 2, 8001, dtype=np.float32)[:-1]
    best = (np.inf, 0, 0.0)

    def search(guesses, constants):
        nonlocal best
        for magic in guesses:
            r = (np.uint32(magic) - x.view(np.uint32)).view(np.float32).astype(np.float64) * x
            low, high = r.min(), r.max()
            for c in constants:  # r (c - r) has its extrema at an end or in the middle
                values = [low * (c - low), high * (c - high)] + ([c * c / 4] if low < c / 2 < high else [])
                best = min(best, (max(abs(v - 1) for v in values), magic, c))

    search(range(0x7e800000, 0x7f000000, 0x8000), np.linspace(1, 3, 2001))
    _, magic, c = best
    search(range(magic - 0x10000, magic + 0x10000, 0x200), np.linspace(c - 0.003, c + 0.003, 601))
    print(f'1/x: guess {best[1]:#x}, constant {best[2]:.9g}, error {best[0]:.3g} after the first step')


if __name__ == '__main__':
    TURN = 2 * np.pi
    fit_reciprocal()
    for degree in (3, 4, 5, 6):
        fit(f'sqrt(1+z), degree {degree}', lambda z: np.sqrt(1 + z), 0, 1, list(range(degree + 1)))
        fit(f'atan(t)/(2 pi t) of z = t^2, degree {degree}', atan_turns_over_t, 1e-14, 1, list(range(degree + 1)),
            weight=lambda z, f: np.sqrt(z))
    for degree in (4, 5, 6):
        fit(f'2^f, degree {degree}', np.exp2, -0.5, 0.5, list(range(degree + 1)))
    fit('sin(2 pi r)/r of z = r^2', lambda z: np.sin(TURN * np.sqrt(z)) / np.sqrt(z), 1e-12, 1 / 64, [0, 1, 2, 3])
    fit('(cos(2 pi r) - 1)/z of z = r^2', lambda z: (np.cos(TURN * np.sqrt(z)) - 1) / z, 1e-9, 1 / 64, [0, 1, 2, 3],
        weight=lambda z, f: z)
    fit('log2(1+f)/f', lambda f: np.log2(1 + f) / f, np.sqrt(0.5) - 1, np.sqrt(2) - 1, list(range(9)),
        weight=lambda f, v: np.abs(f) + 0.01)
