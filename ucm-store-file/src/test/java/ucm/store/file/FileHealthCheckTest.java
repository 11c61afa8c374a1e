package ucm.store.file;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.admin.HealthCheck.Finding;
import ucm.api.admin.HealthCheck.Status;
import ucm.api.config.StoreConfig;
import ucm.platform.libc.Errno;
import ucm.store.file.fixture.FaultyFiles;
import ucm.store.file.fixture.SmallMount;

class FileHealthCheckTest {

  @TempDir private Path folder;
  private final FaultyFiles files = new FaultyFiles();
  private final Map<String, Object> values = new HashMap<>();

  private Map<String, Finding> run(Path... directories) {
    values.put("storage_backends", Stream.of(directories).map(Path::toString).toList());
    List<Finding> findings =
        new FileHealthCheck(LocalFileStore.KIND, StoreConfig.of(values), files).run();
    Map<String, Finding> bySubject = new HashMap<>();
    findings.forEach(finding -> bySubject.put(finding.subject(), finding));
    assertThat(bySubject).hasSize(findings.size());
    return bySubject;
  }

  private void isLeftEmpty() throws IOException {
    try (Stream<Path> left = Files.list(folder)) {
      assertThat(left).isEmpty();
    }
  }

  @Test
  void looksAtADirectoryThatIsNotThereYetAndLeavesNothing() throws IOException {
    Path directory = folder.resolve("not/there");
    Map<String, Finding> found = run(directory);
    assertThat(found.keySet())
        .containsExactlyInAnyOrder(
            "directory " + directory,
            "space in " + directory,
            "clock of " + directory,
            "O_DIRECT in " + directory,
            "aio in " + directory,
            "capacity of Local");
    assertThat(found.get("directory " + directory))
        .isEqualTo(
            Finding.ok("directory " + directory, "is not there yet, and can be made in " + folder));
    assertThat(found.values()).noneMatch(finding -> finding.status() == Status.FAILED);
    isLeftEmpty();
  }

  @Test
  void missingAbilitiesFailOnlyWhereTheyAreAskedFor() throws IOException {
    files.failAll(FaultyFiles.Call.SET_DIRECT, Errno.EINVAL);
    String direct = "O_DIRECT in " + folder;
    String aio = "aio in " + folder;
    Map<String, Finding> unasked = run(folder);
    assertThat(unasked.get(direct))
        .isEqualTo(Finding.ok(direct, "does not work, and io_direct is false"));
    assertThat(unasked.get(aio))
        .isEqualTo(Finding.ok(aio, "does not work, and local_io_engine is psync"));
    values.put("io_direct", true);
    values.put("local_io_engine", "aio");
    Map<String, Finding> asked = run(folder);
    assertThat(asked.get(direct).status()).isEqualTo(Status.FAILED);
    assertThat(asked.get(direct).found()).contains("refuses O_DIRECT", "io_direct: false");
    assertThat(asked.get(aio).status()).isEqualTo(Status.FAILED);
    assertThat(asked.get(aio).advice()).contains("fs.aio-max-nr", "psync");
    isLeftEmpty();
  }

  @Test
  void comparesTheRoomWithCapacityAndFloor() {
    Map<String, Finding> plain = run(folder, folder.resolve("other"));
    assertThat(plain.get("capacity of Local").found()).contains("local_capacity_gb is 0");
    values.put("local_capacity_gb", 1e6);
    values.put("local_min_free_gb", 1e6);
    Map<String, Finding> found = run(folder, folder.resolve("other"));
    assertThat(found.get("capacity of Local").status()).isEqualTo(Status.WARNING);
    Finding space = found.get("space in " + folder);
    assertThat(space.status()).isEqualTo(Status.FAILED);
    assertThat(space.advice()).contains("local_min_free_gb is 1000000", "no block is written");
    long total = folder.toFile().getTotalSpace();
    // Both directories are on one file system, whose room counts once.
    values.put("local_capacity_gb", total * 1.5 / (1L << 30));
    assertThat(run(folder, folder.resolve("other")).get("capacity of Local").status())
        .isEqualTo(Status.WARNING);
    values.put("local_capacity_gb", total * 0.5 / (1L << 30));
    assertThat(run(folder).get("capacity of Local").status()).isEqualTo(Status.OK);
  }

  @Test
  void warnsOfMemoryThatPassesForADisk() throws IOException {
    try (SmallMount memory = SmallMount.tmpfs(folder, 1 << 20)) {
      values.put("local_min_free_gb", 0);
      Finding space = run(memory.directory).get("space in " + memory.directory);
      assertThat(space.status()).isEqualTo(Status.WARNING);
      assertThat(space.found()).contains("tmpfs");
      assertThat(space.advice()).contains("gone after a restart");
    }
  }

  @Test
  void whatIsNoDirectoryOrCannotBeWrittenFails() throws IOException {
    Path file = Files.createFile(folder.resolve("file"));
    Finding none = run(file).get("directory " + file);
    assertThat(none.status()).isEqualTo(Status.FAILED);
    assertThat(none.found()).contains("is no directory");
    // Not even root can make files there.
    Path proc = Path.of("/proc/ucm");
    Finding closed = run(proc).get("directory " + proc);
    assertThat(closed.status()).isEqualTo(Status.FAILED);
    assertThat(closed.found()).contains("cannot be written");
    assertThat(closed.advice()).contains("storage_backends");
  }

  @Test
  void triesNamesAndPathsAsLongAsThoseThatWillBeMade() throws IOException {
    Path longest = folder.resolve("x".repeat(255)).resolve("below");
    assertThat(run(longest).get("directory " + longest).status()).isEqualTo(Status.OK);
    Path tooLong = folder.resolve("x".repeat(256));
    Finding name = run(tooLong).get("directory " + tooLong);
    assertThat(name.status()).isEqualTo(Status.FAILED);
    assertThat(name.found()).isEqualTo("cannot be written: File name too long");
    // The directory fits into a path of 4,095 bytes, and the files of blocks in it do not.
    Path deep = folder;
    while (deep.toString().length() < 4060) {
      deep = deep.resolve("d".repeat(Math.min(200, 4060 - deep.toString().length())));
    }
    Finding path = run(deep).get("directory " + deep);
    assertThat(path.status()).isEqualTo(Status.FAILED);
    assertThat(path.found()).contains("File name too long");
    isLeftEmpty();
  }

  @Test
  void warnsOfAClockThatDiffersInEitherDirection() {
    assertThat(FileHealthCheck.clock("/a", Duration.ofMillis(-1900)).status()).isEqualTo(Status.OK);
    Finding late = FileHealthCheck.clock("/a", Duration.ofMillis(-2100));
    assertThat(late.status()).isEqualTo(Status.WARNING);
    assertThat(late.found()).contains("-2.1 s");
    assertThat(FileHealthCheck.clock("/a", Duration.ofHours(1)).advice()).contains("NTP");
  }
}
