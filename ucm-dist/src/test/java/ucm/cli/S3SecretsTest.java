package ucm.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What someone put where it does not belong is shown by no command. */
final class S3SecretsTest {

  private static final String SECRET = "hunter2hunter2";

  @TempDir private Path folder;

  private static String run(String... args) {
    StringWriter out = new StringWriter();
    int _ = Main.run(new PrintWriter(out, true), new PrintWriter(out, true), args);
    return out.toString();
  }

  private List<String> said(String line) throws IOException {
    String file =
        Files.writeString(
                folder.resolve("ucm.yaml"),
                """
                ucm_connectors:
                  - ucm_connector_name: "UcmPipelineStore"
                    ucm_connector_config:
                      store_pipeline: "Cache|S3"
                      cache_buffer_capacity_gb: 0.01
                      s3_bucket: "kv-blocks"
                      timeout_ms: 2000
                      s3_first_byte_ms: 1000
                """
                    + "      "
                    + line
                    + "\n")
            .toString();
    List<String> said = new ArrayList<>();
    for (String json : List.of("", "--json")) {
      List<String> more = json.isEmpty() ? List.of() : List.of(json);
      for (List<String> command :
          List.of(
              List.of("config", "check", file),
              List.of("config", "show", file),
              List.of("doctor", "--config", file))) {
        List<String> words = new ArrayList<>(command);
        words.addAll(more);
        said.add(run(words.toArray(String[]::new)));
      }
    }
    return said;
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "s3_endpoints: \"https://user:" + SECRET + "@127.0.0.1:1\"",
        "s3_endpoints: \"http://127.0.0.1:1/?key=" + SECRET + "\"",
        "aws_secret_access_key: \"" + SECRET + "\"",
        "s3_secret_key: \"" + SECRET + "\""
      })
  void noCommandShowsIt(String line) throws IOException {
    List<String> said = said(line);
    assertThat(said.getFirst())
        .as("the key is named")
        .contains(line.substring(0, line.indexOf(':')));
    assertThat(said).allSatisfy(text -> assertThat(text).doesNotContain(SECRET));
  }

  /** Such a search finds what is shown. */
  @ParameterizedTest
  @ValueSource(strings = "s3_prefix: \"" + SECRET + "\"")
  void whatIsNoSecretIsShown(String line) throws IOException {
    assertThat(said(line)).anyMatch(text -> text.contains(SECRET));
  }
}
