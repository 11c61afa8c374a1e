package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;

/** The flat file of the original's NFS store, given to the image as it is but for the directory. */
class NfsIT {

  private static final String SEED =
      """
      # UCM Configuration File Example
      # Refer to file unified-cache-management/examples/ucm_config_example.yaml for more details
      ucm_connector_name: "UcmNfsStore"

      ucm_connector_config:
        storage_backends: "%s"
        transferStreamNumber: 32
      """;

  @TempDir private Path folder;

  @Test
  void servesPromptsAndItsDirectoryIsKnownWithoutSayingWhichStoreItIs() throws IOException {
    Path cache = folder.resolve("cache");
    Path file = Files.writeString(folder.resolve("ucm.yaml"), SEED.formatted(cache));
    UcmProcess.Ended demo =
        UcmProcess.run("demo", "--config", file, "--prompts", 1, "--input-len", 1280).requireOk();
    assertThat(demo.out()).contains("Round 2 found 10 of 10 blocks");
    assertThat(demo.err())
        .containsPattern(
            "\\[UCMNFSSTORE\\] \\[I\\] Task\\(1,D2S,240,15728640\\) finished, elapsed [0-9.]+s")
        .containsPattern(
            "\\[UCMNFSSTORE\\] \\[I\\] Task\\(1,S2D,240,15728640\\) finished, elapsed");
    JsonNode stat = UcmProcess.run("store", "stat", cache, "--json").json().get("directories");
    assertThat(stat.get(0).get("blocks").asInt()).isEqualTo(10);
    UcmProcess.Ended verify = UcmProcess.run("store", "verify", cache).requireOk();
    assertThat(verify.out()).contains("10 blocks are good");
    UcmProcess.Ended gc = UcmProcess.run("store", "gc", cache, "--to-percent", 0);
    assertThat(gc.out()).contains("removed 10 blocks");
  }

  @Test
  void doctorLooksAtItsDirectoryAndSendsABlockThrough() throws IOException {
    Path cache = folder.resolve("cache");
    Path file = Files.writeString(folder.resolve("ucm.yaml"), SEED.formatted(cache));
    UcmProcess.Ended doctor = UcmProcess.run("doctor", "--config", file).requireOk();
    assertThat(doctor.out())
        .contains("directory " + cache, "O_DIRECT in " + cache, "capacity of Nfs")
        .contains("ok       block through Nfs in " + cache);
    assertThat(cache).doesNotExist();
  }
}
