"""Points from images in folders and archives: the pixels that were saved come back, and what is wrong is told."""

import struct
import zipfile
import zlib

import numpy as np
import pytest
from PIL import Image

from usimul.points import read_points
from usimul.validation import FileFormatError, InputError, InputTypeError

GREY = np.random.default_rng(0).integers(0, 256, (4, 4, 6), dtype=np.uint8)
NAMES = ("b.png", "a/d.bmp", "a/c.tiff", "e.webp")
ORDER = ("a/c.tiff", "a/d.bmp", "b.png", "e.webp")


def save(path, array, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path, **options)
    return path


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "images"
    for name, array in zip(NAMES, GREY, strict=True):
        colour = {"lossless": True} if name.endswith("webp") else {}
        save(root / name, np.stack([array] * 3, axis=2) if colour else array, **colour)
    (root / "notes.txt").write_text("no image")
    (root / ".hidden.png").write_bytes(b"no image")
    (root / ".cache").mkdir()
    (root / ".cache" / "x.png").write_bytes(b"no image")
    return root


@pytest.fixture
def grey_folder(folder):
    (folder / "e.webp").unlink()
    return folder


def zipped(root, path, **extra):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(root.rglob("*"), reverse=True):
            if file.is_file():
                archive.write(file, file.relative_to(root).as_posix())
        for name, content in extra.items():
            archive.writestr(name, content)
    return path


def problems_of(source, **options):
    with pytest.raises(InputError) as error:
        read_points(source, **options)
    return str(error.value)


class TestPixels:
    def test_grey_if_all_are_grey(self, grey_folder):
        points = read_points(grey_folder)
        assert points.ids == ORDER[:3]
        assert points.image_shape == (1, 4, 6)
        assert points.rows.dtype == np.uint8
        expected = [GREY[NAMES.index(name)] for name in ORDER[:3]]
        assert np.array_equal(points.rows.reshape(3, 4, 6), expected)

    def test_rgb_if_one_is_coloured(self, folder):
        points = read_points(folder)
        assert points.ids == ORDER
        assert points.image_shape == (3, 4, 6)
        expected = [[GREY[NAMES.index(name)]] * 3 for name in ORDER]
        assert np.array_equal(points.rows.reshape(4, 3, 4, 6), expected)
        assert read_points(folder, mode="grey").image_shape == (1, 4, 6)

    def test_channels_come_first(self, tmp_path):
        colour = np.random.default_rng(1).integers(0, 256, (4, 6, 3), dtype=np.uint8)
        save(tmp_path / "x.png", colour)
        assert np.array_equal(read_points(tmp_path).rows.reshape(3, 4, 6), colour.transpose(2, 0, 1))

    def test_grey_of_a_colour_is_its_brightness(self, tmp_path):
        save(tmp_path / "x.png", np.full((2, 2, 3), (200, 100, 50), dtype=np.uint8))
        found = read_points(tmp_path, mode="grey").rows
        assert np.all(np.abs(found - (0.299 * 200 + 0.587 * 100 + 0.114 * 50)) <= 1)  # ITU-R 601-2

    def test_jpeg_is_near(self, tmp_path):
        ramp = np.tile(np.arange(0, 160, 10, dtype=np.uint8), (16, 1))
        save(tmp_path / "x.JPG", ramp, quality=95)
        assert np.abs(read_points(tmp_path).rows.reshape(16, 16).astype(int) - ramp).max() <= 4

    def test_resize_is_height_and_width(self, grey_folder):
        save(grey_folder / "wide.png", np.full((3, 9), 77, dtype=np.uint8))
        points = read_points(grey_folder, resize=(2, 5))
        assert points.image_shape == (1, 2, 5)
        assert np.all(points.rows[points.rows_of(["wide.png"])] == 77)
        halves = np.zeros((8, 8), dtype=np.uint8)
        halves[4:] = 200  # the lower half
        save(grey_folder / "halves.png", halves)
        top, bottom = read_points(grey_folder, resize=(2, 1)).rows[3]
        assert top < 60
        assert bottom > 140

    def test_photographs_stand_upright(self, tmp_path):
        exif = Image.Exif()
        exif[0x0112] = 6  # turn by 90 degrees clockwise to see it upright
        save(tmp_path / "x.png", GREY[0], exif=exif)
        points = read_points(tmp_path)
        assert points.image_shape == (1, 6, 4)
        assert np.array_equal(points.rows.reshape(6, 4), np.rot90(GREY[0], -1))

    def test_opaque_alpha_and_palettes(self, tmp_path):
        colour = np.random.default_rng(1).integers(0, 256, (4, 6, 3), dtype=np.uint8)
        save(tmp_path / "a.png", np.dstack([colour, np.full((4, 6), 255, dtype=np.uint8)]))
        Image.fromarray(np.zeros((4, 6, 3), dtype=np.uint8)).quantize(2).save(tmp_path / "p.png")
        points = read_points(tmp_path)
        assert np.array_equal(points.rows[0].reshape(3, 4, 6), colour.transpose(2, 0, 1))
        assert not points.rows[1].any()


class TestZip:
    def test_read_in_place(self, grey_folder, tmp_path):
        archive = zipped(grey_folder, tmp_path / "x.zip", **{"__MACOSX/b.png": b"no image"})
        before = sorted(tmp_path.rglob("*"))
        found, expected = read_points(archive), read_points(grey_folder)
        assert sorted(tmp_path.rglob("*")) == before
        assert found.ids == expected.ids
        assert np.array_equal(found.rows, expected.rows)

    def test_members_outside_are_named(self, grey_folder, tmp_path):
        png = (grey_folder / "b.png").read_bytes()
        evil = ("../evil.png", "/abs.png", "a/../../x.png", "C:\\x.png", "..\\y.png")
        archive = zipped(grey_folder, tmp_path / "x.zip", **dict.fromkeys(evil, png))
        text = problems_of(archive)
        assert "has 5 problems" in text
        for name in evil:
            assert repr(name) in text
        assert not list(tmp_path.rglob("evil.png"))

    def test_other_members_are_still_looked_at(self, grey_folder, tmp_path):
        text = problems_of(zipped(grey_folder, tmp_path / "x.zip", **{"../evil.png": b"", "bad.png": b"xx"}))
        assert "'../evil.png'" in text
        assert "'bad.png' is no image" in text

    @pytest.mark.filterwarnings("ignore:Duplicate name")
    def test_repeated_members(self, grey_folder, tmp_path):
        archive = zipped(grey_folder, tmp_path / "x.zip", **{"b.png": (grey_folder / "b.png").read_bytes()})
        assert "Members must have different names. 'b.png' occurs again" in problems_of(archive)

    def test_encrypted_members(self, grey_folder, tmp_path):
        archive = zipped(grey_folder, tmp_path / "x.zip")
        content = bytearray(archive.read_bytes())
        for place in range(len(content) - 4):
            if content[place : place + 4] == b"PK\x01\x02":
                content[place + 8] |= 1
        archive.write_bytes(content)
        assert "Members must not be encrypted. 'b.png'" in problems_of(archive)

    def test_cap_on_the_unpacked_size(self, grey_folder, tmp_path, monkeypatch):
        archive = zipped(grey_folder, tmp_path / "x.zip")
        with zipfile.ZipFile(archive) as members:
            total = sum(info.file_size for info in members.infolist() if info.filename in ORDER)
        monkeypatch.setattr("usimul.points.galleries.MAX_UNPACKED", total)
        assert len(read_points(archive)) == 3
        monkeypatch.setattr("usimul.points.galleries.MAX_UNPACKED", total - 1)
        assert f"at most {total - 1:,} bytes together, unpacked. These have {total:,}" in problems_of(archive)

    def test_cap_on_the_pixels(self, tmp_path, monkeypatch):
        save(tmp_path / "images" / "x.png", np.zeros((300, 400), dtype=np.uint8))  # some hundred bytes
        archive = zipped(tmp_path / "images", tmp_path / "x.zip")
        monkeypatch.setattr("usimul.points.galleries.MAX_UNPACKED", 300 * 400)
        assert read_points(archive).rows.shape == (1, 300 * 400)
        monkeypatch.setattr("usimul.points.galleries.MAX_UNPACKED", 300 * 400 - 1)
        assert "pixels of an archive may have at most 119,999 bytes together. These have 120,000" in problems_of(
            archive
        )
        assert read_points(archive, resize=(3, 4)).rows.shape == (1, 12)

    def test_cap_on_one_member(self, grey_folder, tmp_path, monkeypatch):
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
        archive = zipped(grey_folder, tmp_path / "x.zip", **{"big.png": b"\0" * (4 * 1000 + (1 << 20) + 1)})
        assert "Members must have at most 1,052,576 bytes. 'big.png' has 1,052,577" in problems_of(archive)

    def test_damaged_archives(self, grey_folder, tmp_path):
        archive = zipped(grey_folder, tmp_path / "x.zip")
        whole = archive.read_bytes()
        for size in (0, 10, len(whole) // 2, len(whole) - 1):
            archive.write_bytes(whole[:size])
            with pytest.raises(FileFormatError, match=r"x\.zip' is not a whole zip archive"):
                read_points(archive)

    def test_damaged_member(self, grey_folder, tmp_path):
        archive = tmp_path / "x.zip"
        png = (grey_folder / "b.png").read_bytes()
        with zipfile.ZipFile(archive, "w") as members:
            members.writestr("good.png", png)
            members.writestr("bad.png", png)
        content = bytearray(archive.read_bytes())
        content[content.rindex(png) + len(png) // 2] ^= 0xFF
        archive.write_bytes(content)
        text = problems_of(archive)
        assert "Images must be whole. 'bad.png': Bad CRC-32" in text
        assert "good.png" not in text


class TestProblems:
    def test_all_at_once(self, grey_folder):
        whole = (grey_folder / "b.png").read_bytes()
        (grey_folder / "cut.png").write_bytes(whole[:60])
        jpeg = save(grey_folder / "cut.jpg", np.tile(GREY[0], (8, 8)))
        jpeg.write_bytes(jpeg.read_bytes()[: jpeg.stat().st_size // 2])
        (grey_folder / "bad.jpg").write_bytes(b"\xff\xd8\xff" + b"x" * 50)
        (grey_folder / "nothing.png").touch()
        save(grey_folder / "tall.png", np.zeros((9, 6), dtype=np.uint8))
        save(grey_folder / "deep.png", np.zeros((4, 6), dtype=np.uint16))
        save(grey_folder / "glass.png", np.zeros((4, 6, 4), dtype=np.uint8))
        frames = [Image.fromarray(array) for array in GREY]
        frames[0].save(grey_folder / "film.tiff", save_all=True, append_images=frames[1:])
        text = problems_of(grey_folder)
        for words in (
            "'bad.jpg'",
            "'cut.jpg': image file is truncated",
            "'cut.png': image file is truncated",
            "'nothing.png'",
            "4 of 4 x 6, such as 'a/c.tiff'",
            "1 of 9 x 6, such as 'tall.png'",
            "--resize HEIGHT WIDTH",
            "Images must have 8 bits for each channel. 'deep.png' has mode I;16",
            "Images must be opaque. 'glass.png'",
            "Files must hold one picture. 'film.tiff' holds 4",
        ):
            assert words in text, text
        assert "b.png" not in text.replace("glass.png", "")

    def test_sixteen_bits_of_colour(self, tmp_path):
        def chunk(kind, data):
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

        rows = (b"\0" + b"\x12\x34" * 3 * 6) * 4
        ihdr = struct.pack(">IIBBBBB", 6, 4, 16, 2, 0, 0, 0)
        chunks = [chunk(b"IHDR", ihdr), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")]
        (tmp_path / "deep.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunks))
        with Image.open(tmp_path / "deep.png") as picture:
            assert picture.mode == "RGB"
        assert "Images must have 8 bits for each channel. 'deep.png' has 16" in problems_of(tmp_path)

    def test_too_large_sizes(self, grey_folder, monkeypatch):
        monkeypatch.setattr("usimul.points.images._pixels", lambda *_: pytest.fail("decoded"))
        text = problems_of(grey_folder, resize=(100_000, 100_000))
        assert "at most 67,108,864 pixels. Got 100000 x 100000, which is 10,000,000,000" in text

        def no_memory(*_, **__):
            raise MemoryError

        monkeypatch.setattr("numpy.zeros", no_memory)
        assert "must fit into memory. These have 72 bytes" in problems_of(grey_folder)

    def test_resize_accepts_mixed_sizes_only(self, grey_folder):
        save(grey_folder / "tall.png", np.zeros((9, 6), dtype=np.uint8))
        assert len(read_points(grey_folder, resize=(4, 6))) == 4
        (grey_folder / "bad.png").write_bytes(b"x")
        assert "'bad.png' is no image" in problems_of(grey_folder, resize=(4, 6))

    @pytest.mark.parametrize("limit", [23, 10])  # Pillow warns above the limit, and refuses above twice the limit
    def test_decompression_bombs(self, grey_folder, monkeypatch, limit):
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
        text = problems_of(grey_folder)
        assert f"Images may have at most {limit} pixels. 'a/c.tiff' has more" in text
        assert "has 3 problems" in text

    def test_other_formats_under_a_known_name(self, tmp_path):
        Image.fromarray(GREY[0]).save(tmp_path / "x.png", format="GIF")
        assert "'x.png' is no image of a known format (PNG, JPEG, BMP, TIFF, WEBP)" in problems_of(tmp_path)

    def test_empty_folder_and_archive(self, tmp_path):
        (tmp_path / "images").mkdir()
        assert "At least one image is expected" in problems_of(tmp_path / "images")
        assert "At least one image is expected" in problems_of(zipped(tmp_path / "images", tmp_path / "x.zip"))

    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"mode": "gray"}, InputError, "`mode` must be one of: grey, rgb.*Did you mean 'grey'"),
            ({"resize": 5}, InputTypeError, r"`resize` must be \(height, width\). Got 5"),
            ({"resize": (0, 5)}, InputError, "`resize` must be at least 1. Got 0"),
        ],
    )
    def test_bad_options(self, folder, options, error, message):
        with pytest.raises(error, match=message):
            read_points(folder, **options)
