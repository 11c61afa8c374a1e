package ucm.example.engine;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.pipeline.config.UcmConfig;

class EngineTest {

  private static final int BLOCKS = 64;
  private static final int[] PROMPT =
      new SplittableRandom(5).ints(160, 0, ModelShape.SMALL.vocabulary()).toArray();

  private final Model model = new Model(ModelShape.SMALL, 1);
  @TempDir private Path folder;

  private Engine engine(Path place, boolean layerwise, int chunkTokens) {
    UcmConfig config =
        UcmConfig.of(
                "Cache|Posix",
                Map.of(
                    "storage_backends",
                    List.of(place.toString()),
                    "cache_buffer_capacity_gb",
                    0.03125))
            .withTopLevel(Map.of("use_layerwise", layerwise), "test");
    return new Engine(model, config, "test", BLOCKS, chunkTokens);
  }

  private Engine.Completion complete(boolean layerwise, int chunkTokens, int[] prompt)
      throws InterruptedException {
    try (Engine engine = engine(folder, layerwise, chunkTokens)) {
      return engine.complete("r", prompt, 3);
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aRestartedEngineLoadsThePrefixAndGetsTheSameBits(boolean layerwise)
      throws InterruptedException {
    Engine.Completion computed = complete(layerwise, 48, PROMPT);
    assertThat(computed.loadedTokens()).isZero();
    Engine.Completion restored = complete(layerwise, 48, PROMPT);
    assertThat(restored.loadedTokens()).as("all but the last token").isEqualTo(159);
    assertThat(restored.logits()).containsExactly(computed.logits());
    assertThat(restored.tokens()).isEqualTo(computed.tokens());
    Engine.Completion otherMode = complete(!layerwise, 7, PROMPT);
    assertThat(otherMode.loadedTokens()).as("one mode loads what the other saved").isEqualTo(159);
    assertThat(otherMode.logits()).containsExactly(computed.logits());
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aPromptThatBeginsTheSameLoadsWhatIsCommon(boolean layerwise) throws InterruptedException {
    complete(layerwise, 160, PROMPT);
    int[] other = PROMPT.clone();
    other[100]++;
    Engine.Completion restored = complete(layerwise, 30, other);
    assertThat(restored.loadedTokens()).as("six blocks of 16").isEqualTo(96);
    try (Engine fresh = engine(folder.resolve("empty"), layerwise, 30)) {
      assertThat(restored.logits()).containsExactly(fresh.complete("r", other, 0).logits());
    }
    int[] different = PROMPT.clone();
    different[0]++;
    assertThat(complete(layerwise, 160, different).loadedTokens()).isZero();
  }

  /** The control: had nothing been restored, the test above would see it. */
  @Test
  void withoutTheRestoredCacheTheLogitsDiffer() throws InterruptedException {
    Engine.Completion computed = complete(true, 160, PROMPT);
    int[] table = IntStream.range(0, 10).toArray();
    try (PagedKvCache empty = new PagedKvCache(ModelShape.SMALL, Engine.BLOCK_TOKENS, 10)) {
      float[] state = model.embed(PROMPT[159]);
      for (int layer = 0; layer < ModelShape.SMALL.layers(); layer++) {
        model.layer(layer, state, empty, table, 159);
      }
      assertThat(model.logits(state)).isNotEqualTo(computed.logits());
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aDamagedBlockIsComputedAgain(boolean layerwise) throws InterruptedException {
    Engine.Completion computed = complete(layerwise, 48, PROMPT);
    damageOneBlock();
    Engine.Completion restored = complete(layerwise, 48, PROMPT);
    assertThat(restored.loadedTokens()).isLessThan(159);
    assertThat(restored.logits()).containsExactly(computed.logits());
    Engine.Completion repaired = complete(layerwise, 48, PROMPT);
    assertThat(repaired.loadedTokens()).as("the block was stored again").isEqualTo(159);
    assertThat(repaired.logits()).containsExactly(computed.logits());
  }

  /** Turns a bit in the middle of a file; its size and its name stay. */
  private void damageOneBlock() {
    try (Stream<Path> files = Files.walk(folder)) {
      Path block =
          files
              .filter(file -> file.getFileName().toString().matches("[0-9a-f]{32}"))
              .findFirst()
              .orElseThrow();
      byte[] bytes = Files.readAllBytes(block);
      bytes[1000] = (byte) (bytes[1000] ^ 1);
      Files.write(block, bytes);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
