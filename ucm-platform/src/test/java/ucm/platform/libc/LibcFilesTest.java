package ucm.platform.libc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.MemoryRegion;

final class LibcFilesTest {

  private final LibcFileOperations files = new LibcFileOperations();
  @TempDir private Path directory;

  @Test
  void writesAndReadsVectors() {
    MemorySegment memory = Arena.ofAuto().allocate(10_000);
    for (int i = 0; i < memory.byteSize(); i++) {
      memory.set(ValueLayout.JAVA_BYTE, i, (byte) (i * 31));
    }
    MemoryRegion region = MemoryRegion.host(memory);
    NativePath path = at("file");
    int fd = files.create(path);
    IoVector from = new IoVector().add(region, 0, 100).add(region, 200, 300);
    assertThat(files.writeAt(fd, path, from, 5)).isEqualTo(400);
    MemorySegment back = Arena.ofAuto().allocate(500);
    IoVector into = new IoVector().add(back.asSlice(100, 200)).add(back.asSlice(0, 50));
    assertThat(VectorIo.readFully(files, fd, path, into, 5)).isEqualTo(250);
    assertThat(back.asSlice(100, 100).mismatch(memory.asSlice(0, 100))).isEqualTo(-1);
    assertThat(back.asSlice(200, 100).mismatch(memory.asSlice(200, 100))).isEqualTo(-1);
    assertThat(back.asSlice(0, 50).mismatch(memory.asSlice(300, 50))).isEqualTo(-1);
    assertThat(files.size(fd, path)).isEqualTo(405);
    IoVector beyond = new IoVector().add(back);
    assertThat(VectorIo.readFully(files, fd, path, beyond, 400)).isEqualTo(5);
    assertThat(beyond.byteSize()).isEqualTo(495);
    files.syncData(fd, path);
    files.close(fd, path);
    assertThat(files.size(path)).isEqualTo(405);
  }

  @Test
  void keepsFilesAndFoldersToTheirOwner() throws IOException {
    files.makeFolder(at("folder"));
    NativePath path = at("folder/file");
    files.close(files.create(path), path);
    assertThat(mode("folder")).isEqualTo("rwx------");
    assertThat(mode("folder/file")).isEqualTo("rw-------");
  }

  @Test
  void tellsWhatIsNotThereFromWhatIsNoFile() throws IOException {
    Files.createDirectory(directory.resolve("folder"));
    Files.writeString(directory.resolve("file"), "x");
    Files.createSymbolicLink(directory.resolve("link"), directory.resolve("file"));
    assertThat(files.openRead(at("none"))).isEqualTo(FileOperations.ABSENT);
    assertThat(files.openRead(at("none/none"))).isEqualTo(FileOperations.ABSENT);
    assertThat(files.openRead(at("file/none"))).isEqualTo(FileOperations.OTHER_TYPE);
    assertThat(files.openRead(at("link"))).isEqualTo(FileOperations.OTHER_TYPE);
    assertThat(files.openWrite(at("folder"))).isEqualTo(FileOperations.OTHER_TYPE);
    assertThat(files.create(at("none/none"))).isEqualTo(FileOperations.ABSENT);
    assertThat(files.size(at("none"))).isEqualTo(FileOperations.ABSENT);
    assertThat(files.size(at("folder"))).isEqualTo(FileOperations.OTHER_TYPE);
    assertThat(files.size(at("link"))).isEqualTo(FileOperations.OTHER_TYPE);
    assertThat(files.size(at("file"))).isEqualTo(1);
    assertThat(files.remove(at("none"))).isFalse();
    assertThat(files.makeFolder(at("folder"))).isFalse();
    assertThat(files.list(at("none"))).isEmpty();
    assertThat(files.list(NativePath.of(directory.toString())))
        .containsExactlyInAnyOrder("file", "folder", "link");
    List<String> names = new ArrayList<>();
    files.forEachName(
        NativePath.of(directory.toString()), name -> names.add(name) && names.size() < 2);
    assertThat(names).as("until no more is wanted").hasSize(2).isSubsetOf("file", "folder", "link");
    assertThatThrownBy(() -> files.forEachName(at("file"), names::add))
        .hasMessageContaining("ENOTDIR");
  }

  @Test
  void namesCallPathAndError() throws IOException {
    Path file = Files.writeString(directory.resolve("file"), "x");
    assertThatThrownBy(() -> files.create(at("file")))
        .isInstanceOf(FileException.class)
        .hasMessage("open " + file + ": EEXIST (File exists)")
        .extracting(e -> ((FileException) e).errno())
        .isEqualTo(Errno.EEXIST);
    assertThatThrownBy(() -> files.rename(at("none"), at("there")))
        .hasMessage(
            "rename " + at("none") + " to " + at("there") + ": ENOENT (No such file or directory)");
    assertThatThrownBy(() -> files.close(-1, at("file"))).hasMessageContaining("EBADF");
    int fd = files.openRead(NativePath.of(directory.toString()));
    IoVector into = new IoVector().add(Arena.ofAuto().allocate(8));
    assertThatThrownBy(() -> files.readAt(fd, at(""), into, 0)).hasMessageContaining("EISDIR");
    files.close(fd, at(""));
  }

  @Test
  void keepsTheErrorNumbersOfThreadsApart() throws Exception {
    Files.writeString(directory.resolve("file"), "x");
    try (ExecutorService threads = Executors.newFixedThreadPool(4)) {
      List<Future<?>> all = new ArrayList<>();
      for (int t = 0; t < 4; t++) {
        int errno = t % 2 == 0 ? Errno.EEXIST : Errno.ENOTDIR;
        NativePath path = t % 2 == 0 ? at("file") : at("file/none");
        all.add(
            threads.submit(
                () -> {
                  for (int i = 0; i < 5_000; i++) {
                    assertThatThrownBy(() -> files.create(path))
                        .extracting(e -> ((FileException) e).errno())
                        .isEqualTo(errno);
                  }
                }));
      }
      for (Future<?> one : all) {
        one.get();
      }
    }
  }

  @Test
  void givesALockToOneAtATime() {
    NativePath path = at("lock");
    int first = files.create(path);
    int second = files.openWrite(path);
    assertThat(files.tryLock(first, path)).isTrue();
    assertThat(files.tryLock(second, path)).isFalse();
    files.close(first, path);
    assertThat(files.tryLock(second, path)).isTrue();
    files.close(second, path);
  }

  private NativePath at(String name) {
    return NativePath.of(directory + "/" + name);
  }

  private String mode(String name) throws IOException {
    return PosixFilePermissions.toString(Files.getPosixFilePermissions(directory.resolve(name)));
  }
}
