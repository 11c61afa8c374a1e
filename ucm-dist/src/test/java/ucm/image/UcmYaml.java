package ucm.image;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Configurations of pipelines. */
public final class UcmYaml {

  private UcmYaml() {}

  /**
   * Writes {@code ucm.yaml} into a folder.
   *
   * @param settings lines of {@code ucm_connector_config}
   */
  public static Path in(Path folder, String... settings) throws IOException {
    return write(folder.resolve("ucm.yaml"), settings);
  }

  /** Writes such a file. */
  static Path write(Path file, String... settings) throws IOException {
    StringBuilder yaml =
        new StringBuilder(
            """
            ucm_connectors:
              - ucm_connector_name: "UcmPipelineStore"
                ucm_connector_config:
            """);
    for (String line : settings) {
      yaml.append("      ").append(line).append('\n');
    }
    return Files.writeString(file, yaml);
  }
}
