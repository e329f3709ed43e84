"""Views of three upright textured planes, rendered for tests of reconstruction, and their true cameras."""
import numpy

WIDTH, HEIGHT, VIEWS = 400, 300, 5
FOCAL = 1.2 * WIDTH  # the focal length that COLMAP assumes, because few views of a small scene do not determine it
CENTRES = [(-0.6 + 0.3 * i, 0.1 * (i % 2), 0.05 * i) for i in range(VIEWS)]
TEXTURE_SIDE = 900  # textures are larger than a view


def texture(run, seed):
    """Returns gray values of a generated picture. run(*arguments) runs the command hartsift and returns its folder."""
    side = TEXTURE_SIDE
    folder = run("draw", f"@scene:{side}x{side}:{seed}", "-o", "scene.ppm", "--max-features", 1, "--circle-scale", 0.1, "-q")
    data = (folder / "scene.ppm").read_bytes()
    return numpy.frombuffer(data[-3 * side * side:], "u1").reshape(side, side, 3)[..., 0].astype(float)


def render_view(planes, centre):
    """Renders upright planes seen by a camera that looks along z. planes: (texture, depth, left end, width)."""
    x, y = numpy.meshgrid(numpy.arange(WIDTH), numpy.arange(HEIGHT))
    rays = (x + 0.5 - WIDTH / 2) / FOCAL, (y + 0.5 - HEIGHT / 2) / FOCAL
    picture = numpy.zeros((HEIGHT, WIDTH))
    for pattern, depth, left, width in planes:  # the farthest plane comes first
        distance = depth - centre[2]
        side = pattern.shape[0] - 1
        u = (centre[0] + rays[0] * distance - left) / width * side
        v = (centre[1] + rays[1] * distance + width / 2) / width * side
        seen = (u >= 0) & (u < side) & (v >= 0) & (v < side)
        column, row = u[seen].astype(int), v[seen].astype(int)
        a, b = u[seen] - column, v[seen] - row
        picture[seen] = ((1 - a) * (1 - b) * pattern[row, column] + a * (1 - b) * pattern[row, column + 1]
                         + (1 - a) * b * pattern[row + 1, column] + a * b * pattern[row + 1, column + 1])
    return numpy.round(picture).astype(numpy.uint8)


def make_views(run, folder):
    """Writes the views 0.pgm, 1.pgm, ... into an empty folder."""
    planes = [(texture(run, 1), 6.0, -3.6, 7.2), (texture(run, 2), 4.2, -2.4, 2.6), (texture(run, 3), 3.6, 0.3, 2.2)]
    folder.mkdir()
    for i, centre in enumerate(CENTRES):
        picture = render_view(planes, centre)
        (folder / f"{i}.pgm").write_bytes(b"P5 %d %d 255\n" % (WIDTH, HEIGHT) + picture.tobytes())


def write_truth(folder):
    """Writes poses.txt and intrinsics.txt of the views, as bench/pipelines reads them."""
    rows = [f"{i}.pgm 1 0 0 {-x} 0 1 0 {-y} 0 0 1 {-z}" for i, (x, y, z) in enumerate(CENTRES)]
    (folder / "poses.txt").write_text("# image, then cam_from_world [R|t] row by row\n" + "\n".join(rows) + "\n")
    (folder / "intrinsics.txt").write_text("# width height fx fy cx cy\n"
                                           f"{WIDTH} {HEIGHT} {FOCAL} {FOCAL} {WIDTH / 2} {HEIGHT / 2}\n")
