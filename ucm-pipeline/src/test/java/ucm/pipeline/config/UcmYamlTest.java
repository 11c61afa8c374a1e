package ucm.pipeline.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import ucm.pipeline.RecordingStore;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.YamlNode.YamlMap;
import ucm.pipeline.config.YamlNode.YamlScalar;

class UcmYamlTest {

  @TempDir Path folder;

  /** Backslash n stands for a new line. */
  @ParameterizedTest(name = "{0}")
  @CsvSource(
      delimiter = '^',
      quoteCharacter = '`',
      value = {
        "a: 1\\na: 2 ^ 2:1 ^ the key a stands here and in line 1; keep one",
        "a:\\n\\tb: 1 ^ 2:1 ^ is no YAML: found a tab; YAML is indented with blanks",
        "a: b: c ^ 1:5 ^ is no YAML: found a ':' where none is allowed; quote the value, or check"
            + " how the line is indented",
        "a: [1, 2 ^ 1:9 ^ is no YAML: while parsing a flow sequence, expected ',' or ']', but got"
            + " <stream end>",
        "a: 'open ^ 1:9 ^ is no YAML: while scanning a quoted scalar, found unexpected end of"
            + " stream",
        "a: 1\\n---\\nb: 2 ^ 3:1 ^ a second document starts here; a configuration is one document",
        "a: &x {k: 1}\\nb: *x ^ 2:4 ^ found the alias *x; write the value out, aliases are refused",
        "a: &x 1\\n<<: *x ^ 2:5 ^ found the alias *x; write the value out, aliases are refused",
        "a: !!java/object {} ^ 1:4 ^ found the tag tag:yaml.org,2002:java/object; write the plain"
            + " value, tags are refused",
        "? [a, b]\\n: 1 ^ 1:4 ^ is no YAML: a key is plain text, not a list or a map",
        "- a\\n- b ^ 1:1 ^ found a list; a configuration is a map of keys and values",
        "just text ^ 1:1 ^ found \"just text\"; a configuration is a map of keys and values",
        "a: %x ^ 1:4 ^ is no YAML: while scanning for the next token, found character '%' that"
            + " cannot start any token.",
      })
  void saysWhatIsWrongAndWhere(String yaml, String position, String message) {
    String text = yaml.replace("\\n", "\n").replace("\\t", "\t");
    assertThatThrownBy(() -> UcmConfig.parse("f.yaml", text))
        .isInstanceOf(ConfigException.class)
        .hasMessageStartingWith("f.yaml:" + position + ": error: " + message)
        .hasMessageEndingWith("\n1 error, 0 warnings");
  }

  @Test
  void anEmptyFileIsNoConfiguration() throws IOException {
    for (String empty : new String[] {"", "\n\n", "# only a comment\n", "---\n...\n"}) {
      Path file = Files.writeString(folder.resolve("empty.yaml"), empty);
      assertThatThrownBy(() -> UcmConfig.read(file))
          .isInstanceOf(ConfigException.class)
          .hasMessageContaining("a configuration is a map of keys and values");
    }
  }

  @Test
  void deepNestingIsRefusedBeforeItHurts() {
    String deep = "a: " + "[".repeat(100_000);
    assertThatThrownBy(() -> UcmConfig.parse("f", deep))
        .isInstanceOf(ConfigException.class)
        .hasMessageContaining("is nested more than 32 deep");
  }

  @Test
  void aFileThatIsNotTextSaysWhere() throws IOException {
    Path binary = folder.resolve("binary.yaml");
    Files.write(binary, new byte[] {'a', ':', ' ', '1', '\n', 'b', 0, 1, 2});
    assertThatThrownBy(() -> UcmConfig.read(binary))
        .hasMessageStartingWith(
            binary + ":2:2: error: found the character U+0000, which no YAML has; is this a text");
    Files.write(binary, new byte[] {'a', ':', ' ', (byte) 0xc3, (byte) 0x28});
    assertThatThrownBy(() -> UcmConfig.read(binary))
        .hasMessageStartingWith(binary + ":1:4: error: is no UTF-8 text from here on");
  }

  @Test
  void aFileThatCannotBeReadSaysWhy() throws IOException {
    Path missing = folder.resolve("missing.yaml");
    assertThatThrownBy(() -> UcmConfig.read(missing))
        .hasMessageStartingWith(missing + ": error: there is no such file");
    assertThatThrownBy(() -> UcmConfig.read(folder))
        .hasMessageStartingWith(folder + ": error: is a directory; name a file");
    Path huge = folder.resolve("huge.yaml");
    Files.writeString(huge, "a: " + "x".repeat(YamlText.MAX_BYTES));
    assertThatThrownBy(() -> UcmConfig.read(huge))
        .hasMessageStartingWith(huge + ": error: is larger than 1048576 bytes");
  }

  @Test
  @Timeout(value = 1, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
  void aPipeIsNotWaitedForAndALinkToAFileIsFollowed() throws Exception {
    Path pipe = folder.resolve("pipe.yaml");
    assertThat(new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor()).isZero();
    assertThatThrownBy(() -> UcmConfig.read(pipe))
        .hasMessageStartingWith(pipe + ": error: is a pipe or a device; name a regular file");
    Path link = Files.createSymbolicLink(folder.resolve("link.yaml"), pipe);
    assertThatThrownBy(() -> UcmConfig.read(link)).hasMessageContaining("is a pipe or a device");
    Path device = Path.of("/dev/zero");
    assertThatThrownBy(() -> UcmConfig.read(device)).hasMessageContaining("is a pipe or a device");
    // As those of a Kubernetes ConfigMap are.
    Path file = Files.writeString(folder.resolve("file.yaml"), "a: 1\n---\nb: 2");
    Path good = Files.createSymbolicLink(folder.resolve("good.yaml"), file);
    assertThatThrownBy(() -> UcmConfig.read(good)).hasMessageContaining("a second document");
  }

  @Test
  void randomBytesAreAnErrorMessageAndNothingElse() throws IOException {
    Random random = new Random(20_260_101);
    Path file = folder.resolve("junk.yaml");
    for (int i = 0; i < 300; i++) {
      byte[] junk = new byte[random.nextInt(400)];
      random.nextBytes(junk);
      Files.write(file, junk);
      ConfigException failure =
          catchThrowableOfType(ConfigException.class, () -> UcmConfig.read(file));
      assertThat(failure).as("junk number %s", i).isNotNull();
    }
  }

  /** A good file with some characters replaced: read or refused, never anything else. */
  @Test
  void damagedFilesAreReadOrRefused() {
    String good = Resources.text("seeds/pipeline_store.yaml");
    String signs = "{}[]:-|>&*!%@`'\"#,?\n\t ~0x";
    Random random = new Random(7);
    StoreCatalog catalog = RecordingStore.catalog(new ArrayList<>());
    int read = 0;
    for (int i = 0; i < 3_000; i++) {
      StringBuilder bad = new StringBuilder(good);
      for (int hit = random.nextInt(1, 4); hit > 0; hit--) {
        bad.setCharAt(random.nextInt(bad.length()), signs.charAt(random.nextInt(signs.length())));
      }
      try {
        assertThat(UcmConfig.parse("f", bad.toString()).check(catalog).text()).contains(" error");
        read++;
      } catch (ConfigException e) {
        assertThat(e.report().errors()).isOne();
      }
    }
    assertThat(read).isBetween(1, 2_999);
  }

  @Test
  void valuesHaveTheTypesOfYaml() {
    YamlMap map =
        UcmYaml.read(
            "f",
            """
            a: 12
            b: -3
            c: +4
            d: 0.5
            e: .5
            f: 1e3
            g: true
            h: False
            i: ~
            j:
            k: "12"
            l: 'null'
            m: .inf
            n: 0123
            o: 99999999999999999999
            p: 1e999
            q: /mnt/a:/mnt/b
            """);
    Object[] expected = {
      12L,
      -3L,
      4L,
      0.5,
      0.5,
      1000.0,
      true,
      "False",
      null,
      null,
      "12",
      "null",
      ".inf",
      "0123",
      "99999999999999999999",
      "1e999",
      "/mnt/a:/mnt/b"
    };
    Object[] found =
        IntStream.range(0, map.entries().size())
            .mapToObj(i -> ((YamlScalar) map.entries().get(i).value()).value())
            .toArray();
    assertThat(found).containsExactly(expected);
  }
}
