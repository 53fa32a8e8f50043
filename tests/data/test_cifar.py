import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

from calmfed import data
from calmfed.data.sources.cifar import CIFAR10, CIFAR100, records
from calmfed.errors import DataError

NAMES10 = b"airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n"
NAMES100 = "".join(f"thing_{number}\n" for number in range(100)).encode()
FOLDER10 = "cifar-10-batches-bin"


def record(*labels: int, **pixels: int) -> bytes:
    """One record: label bytes, then planes; a pixel is given as ``c1y2x3=200``."""
    image = np.zeros((3, 32, 32), np.uint8)
    for place, value in pixels.items():
        c, y, x = (int(part) for part in place.replace("y", " ").replace("x", " ")[1:].split())
        image[c, y, x] = value
    return bytes(labels) + image.tobytes()


def pack(path: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def files10() -> dict[str, bytes]:
    batches = {
        f"{FOLDER10}/data_batch_{n}.bin": record(n, c0y0x0=n) + record(9, c2y31x30=77)
        for n in (3, 1, 2, 5, 4)  # the order in the archive is not that of the batches
    }
    return {
        f"{FOLDER10}/readme.html": b"<html>",
        f"{FOLDER10}/batches.meta.txt": NAMES10,
        **batches,
        f"{FOLDER10}/test_batch.bin": record(0, c1y2x3=200),
    }


def files100() -> dict[str, bytes]:
    return {
        "cifar-100-binary/train.bin": record(19, 99, c0y1x2=9) + record(0, 7, c1y0x0=8),
        "cifar-100-binary/test.bin": record(3, 42, c2y31x31=255),
        "cifar-100-binary/fine_label_names.txt": NAMES100,
        "cifar-100-binary/coarse_label_names.txt": b"coarse\n",
    }


def test_cifar10_pixels_and_labels_land_where_they_belong(tmp_path: Path) -> None:
    pack(tmp_path / CIFAR10.name, files10())
    cifar = data.source("cifar10").load(tmp_path, public=False)
    assert cifar.name == "cifar10"
    assert cifar.train_x.shape == (10, 3, 32, 32)
    assert cifar.train_x.dtype == np.uint8
    assert cifar.train_y.tolist() == [1, 9, 2, 9, 3, 9, 4, 9, 5, 9]
    assert cifar.train_x[::2, 0, 0, 0].tolist() == [1, 2, 3, 4, 5]
    assert (cifar.train_x[1::2, 2, 31, 30] == 77).all()
    assert cifar.test_x[0, 1, 2, 3] == 200
    assert int(cifar.test_x.sum(dtype=np.int64)) == 200
    assert cifar.labels[6] == "frog"
    assert cifar.public_x is None


def test_cifar100_takes_the_fine_label(tmp_path: Path) -> None:
    pack(tmp_path / CIFAR100.name, files100())
    cifar = data.source("cifar100").load(tmp_path, public=False)
    assert cifar.train_y.tolist() == [99, 7]
    assert cifar.test_y.tolist() == [42]
    assert cifar.train_x[0, 0, 1, 2] == 9
    assert cifar.test_x[0, 2, 31, 31] == 255
    assert cifar.labels[42] == "thing_42"


def test_cifar100_is_the_public_set_of_cifar10(tmp_path: Path) -> None:
    pack(tmp_path / CIFAR10.name, files10())
    pack(tmp_path / CIFAR100.name, files100())
    public = data.source("cifar10").load(tmp_path, public=True).public_x
    assert public is not None
    assert public.shape == (2, 3, 32, 32)
    assert public[1, 1, 0, 0] == 8


def test_names_with_a_leading_dot_are_the_same(tmp_path: Path) -> None:
    pack(tmp_path / CIFAR10.name, {f"./{name}": held for name, held in files10().items()})
    assert data.source("cifar10").load(tmp_path, public=False).classes == 10


@pytest.mark.parametrize(
    ("member", "content", "message"),
    [
        ("data_batch_2.bin", record(1)[:-1], "data_batch_2.bin should hold records of 3073 bytes"),
        ("data_batch_2.bin", b"", "data_batch_2.bin should hold records"),
        ("test_batch.bin", record(10), "test_batch.bin has a label 10, but there are 10 classes"),
        ("batches.meta.txt", b"cat\ndog\n", "batches.meta.txt should name 10 classes"),
        ("test_batch.bin", None, f"holds no {FOLDER10}/test_batch.bin"),
    ],
)
def test_what_is_wrong_inside_is_named(
    tmp_path: Path, member: str, content: bytes | None, message: str
) -> None:
    files = files10()
    if content is None:
        del files[f"{FOLDER10}/{member}"]
    else:
        files[f"{FOLDER10}/{member}"] = content
    pack(tmp_path / CIFAR10.name, files)
    with pytest.raises(DataError, match=message) as caught:
        data.source("cifar10").load(tmp_path, public=False)
    assert str(tmp_path / CIFAR10.name) in str(caught.value)


def test_the_other_set_under_this_name_is_noticed(tmp_path: Path) -> None:
    pack(tmp_path / CIFAR10.name, files100())
    with pytest.raises(DataError, match="holds no cifar-10-batches-bin"):
        data.source("cifar10").load(tmp_path, public=False)


def test_a_coarse_label_out_of_range_is_noticed() -> None:
    with pytest.raises(DataError, match="here has a label 20, but there are 20"):
        records(record(20, 3), "here", limits=(20, 100))


def test_an_archive_cut_anywhere_names_itself(tmp_path: Path) -> None:
    path = tmp_path / CIFAR10.name
    pack(path, files10())
    whole = path.read_bytes()
    for share in (0.0, 0.02, 0.5, 0.9):
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(DataError, match=CIFAR10.name):
            data.source("cifar10").load(tmp_path, public=False)
    path.write_bytes(b"<html>404 Not Found</html>")
    with pytest.raises(DataError, match="damaged or not what its name says"):
        data.source("cifar10").load(tmp_path, public=False)
