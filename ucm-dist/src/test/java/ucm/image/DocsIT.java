package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

class DocsIT {

  @Test
  void theReferencePageIsWhatTheDeclaredKeysSay() throws IOException {
    UcmProcess.Ended docs = UcmProcess.run("config", "docs").requireOk();
    assertThat(Files.readString(Path.of("../docs/config.md")))
        .as(
            "docs/config.md is stale; write it again with: ./ucm config docs --output"
                + " docs/config.md")
        .isEqualTo(docs.out());
  }
}
