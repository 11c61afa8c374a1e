package ucm.store.ds3fs;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.admin.HealthCheck.Finding;
import ucm.api.admin.HealthCheck.Status;
import ucm.api.config.StoreConfig;

final class Ds3fsHealthCheckTest {

  @TempDir private Path mount;

  private static List<Finding> findings(Map<String, Object> values) {
    return new Ds3fsHealthCheck().run(StoreConfig.of(values), List.of("Cache", "Ds3fs"));
  }

  private static Map<String, Object> asked(Path directory) {
    Map<String, Object> settings = new TreeMap<>(SmallHf3fs.settings(directory));
    return settings;
  }

  @Test
  void needsNoLibraryWhereNoPipelineAsksForIt() {
    StoreConfig none = StoreConfig.of(Map.of());
    assertThat(new Ds3fsHealthCheck().run(none, List.of("Cache", "Posix")))
        .singleElement()
        .satisfies(finding -> assertThat(finding.status()).isEqualTo(Status.OK))
        .satisfies(finding -> assertThat(finding.subject()).isEqualTo("3FS library"));
  }

  @Test
  void showsLibraryMountAndSharedMemory() throws Exception {
    mount = mount.toRealPath();
    SimulatedHf3fs.load(mount);
    assertThat(findings(asked(mount.resolve("not/there/yet"))))
        .noneMatch(finding -> finding.status() == Status.FAILED)
        .extracting(Finding::subject)
        .startsWith("3FS library", "3FS mount", "shared memory for 3FS")
        .contains("directory " + mount.resolve("not/there/yet"), "capacity of Ds3fs");
  }

  @Test
  void saysWhatToDoAboutWhatIsMissing(@TempDir Path elsewhere) {
    SimulatedHf3fs.load(mount);
    Map<String, Object> settings = asked(elsewhere);
    settings.put("iov_write_size", 1L << 40);
    assertThat(findings(settings))
        .extracting(Finding::status)
        .startsWith(Status.OK, Status.FAILED, Status.FAILED);
    settings.put("ds3fs_library_path", elsewhere.toString());
    Finding library = findings(settings).getFirst();
    assertThat(library.status()).isEqualTo(Status.FAILED);
    assertThat(library.found()).contains("libhf3fs_api_shared.so");
    assertThat(library.advice()).contains("docs/3fs.md");
    assertThat(findings(settings))
        .as("without the library the type of the file system tells")
        .filteredOn(finding -> finding.subject().equals("3FS mount"))
        .singleElement()
        .satisfies(mount -> assertThat(mount.status()).isEqualTo(Status.FAILED))
        .satisfies(mount -> assertThat(mount.found()).contains("not on 3FS", elsewhere.toString()));
  }
}
