"""Two-view models in NumPy, many at a time ([m, 3, 3]): from points, from frames, their scores and improvement.

For affine_samples.py. Points are [m, k, 2], frames [m, k, 2, 2], columns their axes; errors are Sampson's, the score is
the sum of (1 - q)^3 over matches, q the squared error over the squared threshold. Frames of a match give the derivative
of its epipolar equation along both axes (Bentolila & Francos, CVIU 122, 2014).
"""
import numpy

from compare_verification import FUNDAMENTAL, HOMOGRAPHY


def homogeneous(p):
    return numpy.concatenate([p, numpy.ones((*p.shape[:-1], 1))], -1)


def homography_rows(a, b):
    """Equations [..., 2, 9] of a match."""
    x, zero = homogeneous(a), numpy.zeros((*a.shape[:-1], 3))
    return numpy.stack([numpy.concatenate([x, zero, -b[..., :1] * x], -1),
                        numpy.concatenate([zero, x, -b[..., 1:] * x], -1)], -2)


def fundamental_row(a, b):
    return (homogeneous(b)[..., :, None] * homogeneous(a)[..., None, :]).reshape(*a.shape[:-1], 9)


def null_vectors(rows):
    return numpy.linalg.svd(rows)[2][:, ::-1]


def of_rank_two(f):
    u, s, v = numpy.linalg.svd(f.reshape(-1, 3, 3))
    s[:, 2] = 0
    return u @ (s[..., None] * v)


def homography_of_points(a, b):
    return null_vectors(homography_rows(a, b).reshape(len(a), -1, 9))[:, 0].reshape(-1, 3, 3)


def homography_of_frames(a, b, frames_a, frames_b):
    """Two matches: their points, and the ends of their frames' axes."""
    ends = [(p[:, :, None] + f.swapaxes(2, 3)).reshape(len(p), -1, 2) for p, f in ((a, frames_a), (b, frames_b))]
    return homography_of_points(numpy.concatenate([a, ends[0]], 1), numpy.concatenate([b, ends[1]], 1))


def affine_of_frames(a, b, frames_a, frames_b):
    """Two matches: the affine map nearest to their points and the ends of their frames' axes."""
    ends = [numpy.concatenate([p, (p[:, :, None] + f.swapaxes(2, 3)).reshape(len(p), -1, 2)], 1)
            for p, f in ((a, frames_a), (b, frames_b))]
    h = numpy.zeros((len(a), 3, 3))
    h[:, 2, 2] = 1
    h[:, :2] = (numpy.linalg.pinv(homogeneous(ends[0])) @ ends[1]).swapaxes(1, 2)
    return h


def affine_of_frame(a, b, frames_a, frames_b):
    h = numpy.zeros((len(a), 3, 3))
    h[:, 2, 2] = 1
    h[:, :2, :2] = frames_b[:, 0] @ numpy.linalg.inv(frames_a[:, 0])
    h[:, :2, 2] = b[:, 0] - (h[:, :2, :2] @ a[:, 0, :, None])[..., 0]
    return h


def fundamental_of_points(a, b):
    """Seven matches; three candidates a sample, NaN where there are fewer."""
    null = null_vectors(fundamental_row(a, b))[:, :2].reshape(-1, 2, 3, 3)
    at = numpy.array([-1.0, 0.0, 1.0, 2.0])
    values = numpy.linalg.det(null[:, None, 0] * at[:, None, None] + null[:, None, 1] * (1 - at)[:, None, None])
    cubic = values @ numpy.linalg.inv(numpy.vander(at)).T
    companion = numpy.zeros((len(a), 3, 3))
    companion[:, 0] = -cubic[:, 1:] / cubic[:, :1]
    companion[:, 1, 0] = companion[:, 2, 1] = 1
    roots = numpy.linalg.eigvals(companion)
    t = numpy.where(abs(roots.imag) < 1e-9, roots.real, numpy.nan)[..., None, None]
    return (t * null[:, None, 0] + (1 - t) * null[:, None, 1]).reshape(-1, 3, 3)


def fundamental_of_frames(a, b, frames_a, frames_b):
    """Three matches, each with the equation of its point and the derivatives along its frame's axes."""
    x, y = homogeneous(a), homogeneous(b)
    rows = [fundamental_row(a, b)]
    for axis in range(2):
        d = numpy.concatenate([frames_a[..., axis], numpy.zeros((*a.shape[:2], 1))], -1)
        e = numpy.concatenate([frames_b[..., axis], numpy.zeros((*a.shape[:2], 1))], -1)
        rows.append((e[..., :, None] * x[..., None, :] + y[..., :, None] * d[..., None, :]).reshape(*a.shape[:2], 9))
    return of_rank_two(null_vectors(numpy.concatenate(rows, 1))[:, 0])


def jacobians(h, a):
    q = homogeneous(a) @ h.swapaxes(-1, -2)
    w, u = q[..., 2:, None], q[..., :2, None] / q[..., 2:, None]
    return (h[..., None, :2, :2] - u * h[..., None, 2:, :2]) / w


def squares(model, m, a, b):
    """Squared Sampson errors [m, n] and what an algebraic equation's square is divided by."""
    q = homogeneous(a) @ m.swapaxes(1, 2)
    if model == HOMOGRAPHY:
        w = q[..., 2] * numpy.where((q[..., 2] > 0).mean(1) < 0.5, -1, 1)[:, None]
        d = q[..., :2] / q[..., 2:] - b
        j = jacobians(m, a)
        s = j @ j.swapaxes(2, 3)
        s00, s11, s01 = s[..., 0, 0] + 1, s[..., 1, 1] + 1, s[..., 0, 1]
        square = (d[..., 0] ** 2 * s11 - 2 * d[..., 0] * d[..., 1] * s01 + d[..., 1] ** 2 * s00) / (s00 * s11 - s01 ** 2)
        return numpy.where(w > 0, square, numpy.inf), q[..., 2] ** 2 * (s00 + s11)
    back = homogeneous(b) @ m
    gradient = (q[..., :2] ** 2).sum(-1) + (back[..., :2] ** 2).sum(-1)
    return (homogeneous(b) * q).sum(-1) ** 2 / gradient, gradient


def score(model, m, a, b, threshold):
    with numpy.errstate(all="ignore"):
        q = squares(model, m, a, b)[0] / threshold ** 2
    return (numpy.where(q < 1, 1 - q, 0) ** 3).sum(1)


def improve(model, m, a, b, threshold, rounds):
    rows = homography_rows(a, b) if model == HOMOGRAPHY else fundamental_row(a, b)[:, None]
    outer = numpy.einsum("nki,nkj->nij", rows, rows).reshape(len(a), 81)
    for wider in rounds:
        with numpy.errstate(all="ignore"):
            square, divisor = squares(model, m, a, b)
            q = square / (wider * threshold) ** 2
            weight = numpy.where(q < 1, (1 - q) ** 2 / divisor, 0)
        form = (numpy.nan_to_num(weight) @ outer).reshape(-1, 9, 9)
        m = numpy.linalg.eigh(form)[1][..., 0].reshape(-1, 3, 3)
        m = of_rank_two(m) if model == FUNDAMENTAL else m
    return m


# name: (matches a sample, candidates a sample, maker, with frames)
MAKERS = {HOMOGRAPHY: {"4 points": (4, 1, homography_of_points, False), "2 frames": (2, 1, homography_of_frames, True),
                       "2 frames, affine": (2, 1, affine_of_frames, True), "1 frame": (1, 1, affine_of_frame, True)},
          FUNDAMENTAL: {"7 points": (7, 3, fundamental_of_points, False),
                        "3 frames": (3, 1, fundamental_of_frames, True)}}
