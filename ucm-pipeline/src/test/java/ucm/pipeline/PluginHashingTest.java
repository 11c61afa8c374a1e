package ucm.pipeline;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.module.ResolvedModule;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.pipeline.connector.ConnectorSetup;
import ucm.pipeline.connector.EngineSpec;
import ucm.pipeline.connector.KvLayout;

/** Block hashers out of jars in the plugins folder. */
class PluginHashingTest extends PluginTest {

  private static final int[] TOKENS = {1, 2, 3, 4, 5, 6, 7, 8};

  /** A hashing that names blocks after their first token, which no sane one does. */
  private static Map<String, String> hashing(String module, String name, String constructorBody) {
    return Map.of(
        "module-info.java",
        "module %s { requires ucm.pipeline; provides ucm.pipeline.BlockHashing with %s.Odd; }"
            .formatted(module, module),
        "Odd.java",
        """
        package %s;
        import ucm.api.BlockIds;
        import ucm.pipeline.*;
        public final class Odd implements BlockHashing {
          public Odd() { %s }
          public String name() { return "%s"; }
          public BlockHasher hasher(String model, int tpSize, String dtype) {
            return new BlockHasher() {
              public BlockIds seed() { return BlockIds.of(0, 0); }
              public BlockHasher forVariant(PromptVariant variant) { return this; }
              public BlockIds hash(int[] t, int from, int to, int size, BlockIds parent) {
                long[] words = new long[(to - from) / size * 2];
                for (int i = 0; i < words.length; i += 2) { words[i + 1] = t[from + i / 2 * size]; }
                return BlockIds.wrap(words);
              }
              public BlockIds ofRank(int rank, BlockIds ids) { return ids; }
            };
          }
        }
        """
            .formatted(module, constructorBody, name));
  }

  /** Where the modules are that the tests run with. */
  private static Path[] modules() {
    return StoreCatalog.class.getModule().getLayer().configuration().modules().stream()
        .map(ResolvedModule::reference)
        .flatMap(reference -> reference.location().stream())
        .filter(location -> "file".equals(location.getScheme()))
        .map(Path::of)
        .toArray(Path[]::new);
  }

  private void plugin(String jar, String module, String name, String constructorBody)
      throws IOException {
    jars.jar(plugins.resolve(jar), jars.classes(hashing(module, name, constructorBody), modules()));
  }

  @Test
  void blockHasherOfAPluginIsUsedByTheNameItGivesItself() throws IOException {
    plugin("odd.jar", "acme.odd", "odd", "");
    StoreCatalog catalog = find();
    assertThat(catalog.problems()).isEmpty();
    assertThat(catalog.blockHashings()).containsExactly("md5-pickle", "odd");
    UcmConfig config =
        UcmConfig.of("Fake", Map.of()).withTopLevel(Map.of("block_hasher", "odd"), "test");
    assertThat(config.check(catalog).hasErrors()).isFalse();
    BlockHasher hasher = config.blockHashing(catalog).hasher("model", 1, "torch.bfloat16");
    assertThat(hasher.hash(TOKENS, 4))
        .isEqualTo(BlockIds.wrap(new long[] {0, TOKENS[0], 0, TOKENS[4]}));
    EngineSpec spec =
        new EngineSpec("engine", "model", "torch.bfloat16", 1, false, 4, KvLayout.uniform(1, 64));
    assertThat(ConnectorSetup.of(config, catalog, spec)).isNotNull();
  }

  @Test
  void pluginNeverTakesThePlaceOfTheOriginalsHasher() throws IOException {
    plugin("thief.jar", "acme.thief", "md5-pickle", "");
    StoreCatalog catalog = find();
    Optional<BlockHashing> found = catalog.blockHashing("md5-pickle");
    assertThat(found).containsInstanceOf(PickleMd5Hashing.class);
    assertThat(catalog.problems())
        .singleElement()
        .asString()
        .contains("thief.jar", "block hasher md5-pickle is not used", "rename or remove one");
  }

  @Test
  void ofTwoPluginsWithOneNameTheSecondIsAProblem() throws IOException {
    plugin("a.jar", "acme.a", "odd", "");
    plugin("b.jar", "acme.b", "odd", "");
    StoreCatalog catalog = find();
    assertThat(catalog.blockHashings()).containsExactly("md5-pickle", "odd");
    assertThat(catalog.problems())
        .singleElement()
        .asString()
        .contains("b.jar", "there is one of this name in", "a.jar");
  }

  @Test
  void hasherThatCannotBeMadeHarmsNothingElse() throws IOException {
    plugin("bad.jar", "acme.bad", "bad", "if (true) throw new IllegalStateException(\"no luck\");");
    plugin("odd.jar", "acme.odd", "odd", "");
    StoreCatalog catalog = find();
    assertThat(catalog.blockHashings()).isEqualTo(List.of("md5-pickle", "odd"));
    assertThat(catalog.names()).contains("Fake");
    assertThat(catalog.problems())
        .singleElement()
        .asString()
        .contains("bad.jar", "cannot be made", "no luck");
  }
}
