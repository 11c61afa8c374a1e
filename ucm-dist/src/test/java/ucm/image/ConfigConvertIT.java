package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@code ucm config convert}: what it writes is a configuration that {@code ucm config check} accepts. */
class ConfigConvertIT {

  @TempDir private Path folder;

  private Path file(String name, String text) throws IOException {
    return Files.writeString(folder.resolve(name), text);
  }

  private static void isAccepted(Path config) {
    UcmProcess.Ended check = UcmProcess.run("config", "check", config);
    assertThat(check.exitCode()).as(check.all()).isZero();
    assertThat(check.out()).contains("0 errors, 0 warnings");
  }

  @Test
  void convertsLmcachesFileIntoOneThatIsAccepted() throws IOException {
    Path from =
        file(
            "lmcache.yaml",
            """
            chunk_size: 256
            remote_storage_plugins: ["hf3fs.primary"]
            blocking_timeout_secs: 10
            extra_config:
              remote_storage_plugin.hf3fs.primary.base_path: "/3fs/stage/dir1,/3fs/stage/dir2"
              hf3fs_mount_point: "/3fs/stage"
              hf3fs_iov_size: 209715200
              hf3fs_ior_entries: 256
              hf3fs_io_depth: 0
              hf3fs_numa_id: -1
              hf3fs_io_thread_num: 4
            """);
    Path to = folder.resolve("ucm.yaml");
    UcmProcess.Ended converted =
        UcmProcess.run("config", "convert", "--from", "lmcache", from, "--output", to);
    assertThat(converted.exitCode()).as(converted.all()).isZero();
    assertThat(converted.out()).isEmpty();
    assertThat(converted.err()).contains("chunk_size: is left out");
    isAccepted(to);
  }

  @Test
  void convertsRtpLlmsSettingsToTheStandardOutput() throws IOException {
    Path from = file("start.sh", "REUSE_CACHE=1 ENABLE_3FS=1 TP_SIZE=4\n");
    UcmProcess.Ended converted = UcmProcess.run("config", "convert", "--from", "rtp-llm", from);
    assertThat(converted.exitCode()).as(converted.all()).isZero();
    assertThat(converted.err()).isEmpty();
    assertThat(converted.out()).contains("40Gi", "iov_read_size: 4294967296");
    isAccepted(file("ucm.yaml", converted.out()));
  }

  @Test
  void mistakesAreToldAndNothingIsWritten() throws IOException {
    Path from = file("lmcache.yaml", "remote_url: \"redis://host\"\n");
    Path to = folder.resolve("ucm.yaml");
    UcmProcess.Ended wrong =
        UcmProcess.run("config", "convert", "--from", "lmcache", from, "--output", to);
    assertThat(wrong.exitCode()).as(wrong.all()).isEqualTo(2);
    assertThat(wrong.err())
        .contains("lmcache.yaml:1:13", "hf3fs:///a/directory")
        .doesNotContain("\tat ");
    assertThat(to).doesNotExist();
    UcmProcess.Ended unknown = UcmProcess.run("config", "convert", "--from", "redis", from);
    assertThat(unknown.exitCode()).isEqualTo(2);
    assertThat(unknown.err()).contains("--from is lmcache or rtp-llm; found redis");
    Path good = file("good.yaml", "remote_url: \"hf3fs:///a\"\n");
    UcmProcess.Ended itself =
        UcmProcess.run("config", "convert", "--from", "lmcache", good, "--output", good);
    assertThat(itself.exitCode()).as(itself.all()).isEqualTo(2);
    assertThat(good).hasContent("remote_url: \"hf3fs:///a\"");
  }
}
