package ucm.pipeline.hash;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.module.ResolvedModule;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.pipeline.Pipeline;
import ucm.pipeline.catalog.PluginJars;
import ucm.pipeline.catalog.PluginTest;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.ConnectorSetup;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.KvLayout;

/** Block hashers out of jars in the plugins folder. */
class PluginHashingTest extends PluginTest {

  private static final int[] TOKENS = {1, 2, 3, 4, 5, 6, 7, 8};

  /** A hashing that names blocks after their first token, which no sane one does. */
  private static Map<String, String> hashing(
      String module, String annotation, String constructorBody, String nameBody) {
    return Map.of(
        "module-info.java",
        "module %s { requires ucm.pipeline; provides ucm.pipeline.hash.BlockHashing with %s.Odd; }"
            .formatted(module, module),
        "Odd.java",
        """
        package %s;
        import ucm.api.BlockIds;
        import ucm.pipeline.hash.*;
        %s
        public final class Odd implements BlockHashing {
          public Odd() { %s }
          public String name() { %s }
          public BlockHasher hasher(String model, int tpSize, String dtype) {
            return new BlockHasher() {
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
            .formatted(module, annotation, constructorBody, nameBody));
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
    add(
        jar,
        hashing(
            module,
            "@BlockHashingName(\"%s\")".formatted(name),
            constructorBody,
            "throw new IllegalStateException(\"asked\");"));
  }

  /** One as plugins had them before there was an annotation. */
  private void unnamed(String jar, String module, String constructorBody, String nameBody)
      throws IOException {
    add(jar, hashing(module, "", constructorBody, nameBody));
  }

  private void add(String jar, Map<String, String> sources) throws IOException {
    jars.jar(plugins.resolve(jar), jars.classes(sources, modules()));
  }

  @Test
  void blockHasherOfAPluginIsUsedByItsName() throws IOException {
    plugin("odd.jar", "acme.odd", "odd", "");
    StoreCatalog catalog = find();
    assertThat(catalog.problems()).isEmpty();
    assertThat(catalog.blockHashings()).containsExactly("md5-pickle", "odd");
    isUsed(catalog);
  }

  @Test
  void blockHasherWithoutAnAnnotationIsUsedByTheNameItGivesItself() throws IOException {
    unnamed("odd.jar", "acme.odd", "", "return \"odd\";");
    StoreCatalog catalog = find();
    assertThat(catalog.blockHashings()).containsExactly("md5-pickle", "(acme.odd.Odd)");
    isUsed(catalog);
    assertThat(catalog.blockHashings()).containsExactly("md5-pickle", "odd");
    assertThat(catalog.problems()).isEmpty();
  }

  private static void isUsed(StoreCatalog catalog) {
    UcmConfig config =
        UcmConfig.of("Fake", Map.of()).withTopLevel(Map.of("block_hasher", "odd"), "test");
    assertThat(config.check(catalog).text()).startsWith("0 errors");
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
    assertThat(found.orElseThrow().hasher("m", 1, "d").hash(TOKENS, 4))
        .isEqualTo(BlockHasher.of("m", 1, "d").hash(TOKENS, 4));
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
  void hasherThatCannotBeMadeIsAnErrorOnlyOfWhoAsksForIt() throws IOException {
    plugin("bad.jar", "acme.bad", "bad", "if (true) throw new IllegalStateException(\"no luck\");");
    StoreCatalog catalog = find();
    UcmConfig config = UcmConfig.of("Fake", Map.of());
    assertThat(config.check(catalog).text()).startsWith("0 errors");
    assertThat(config.withTopLevel(Map.of("block_hasher", "bad"), "test").check(catalog).text())
        .contains("block_hasher: is bad: the block hasher bad in ", "cannot be made", "no luck");
  }

  /** Each of these would end this test's process, or never come back, if it were run. */
  @Test
  void nothingOfAPluginRunsForACommandThatDoesNotUseIt() throws IOException {
    plugin("exit.jar", "acme.exit", "exit", "System.exit(3);");
    unnamed("exit2.jar", "acme.exit2", "System.exit(3);", "return null;");
    Map<String, String> store = new HashMap<>(PluginJars.store("acme.store", "Bomb", "Bomb"));
    store.put(
        "Bomb.java",
        PluginJars.storeClass(
            "acme.store", "Bomb", "Bomb", "static { System.exit(3); } public Bomb() {}"));
    store.put(
        "module-info.java",
        "module acme.store { requires ucm.api; provides ucm.api.Store with acme.store.Bomb;"
            + " provides ucm.api.admin.HealthCheck with acme.store.OddCheck; }");
    store.put(
        "OddCheck.java",
        """
        package acme.store;
        import ucm.api.*;
        import ucm.api.admin.*;
        import ucm.api.config.*;
        public final class OddCheck implements HealthCheck {
          public OddCheck() { System.exit(3); }
          public java.util.List<Finding> run(
              StoreConfig config, java.util.List<String> stages) { return null; }
        }
        """);
    plugin("bomb.jar", store);
    StoreCatalog catalog = find();
    assertThat(catalog.problems()).isEmpty();
    assertThat(names(catalog)).containsExactly("Bomb");
    assertThat(catalog.blockHashings()).containsExactly("exit", "md5-pickle", "(acme.exit2.Odd)");
    UcmConfig config = UcmConfig.of("Fake", Map.of("block_size", 64));
    assertThat(config.check(catalog).text()).startsWith("0 errors");
    assertThat(config.effective(catalog).entries()).isNotEmpty();
    Pipeline.open(config, catalog).close();
  }

  @Test
  void hasherWhoseNameIsNullOrThrowsIsAProblemForWhoLooksForAName() throws IOException {
    unnamed("a.jar", "acme.a", "", "return null;");
    unnamed("b.jar", "acme.b", "", "throw new AssertionError(\"no luck\");");
    unnamed("odd.jar", "acme.odd", "", "return \"odd\";");
    StoreCatalog catalog = find();
    isUsed(catalog);
    assertThat(catalog.problems())
        .hasSize(2)
        .anySatisfy(p -> assertThat(p.toString()).contains("a.jar", "has no name"))
        .anySatisfy(p -> assertThat(p.toString()).contains("b.jar", "name()", "no luck"));
  }

  @Test
  void codeThatHangsIsAnErrorOfItsStage() throws IOException {
    String forever = "while (true) { java.util.concurrent.locks.LockSupport.park(); }";
    unnamed("hang.jar", "acme.hang", "", forever);
    String slow = PluginJars.storeClass("acme.slow", "Slow", "Slow");
    plugin(
        "slow.jar",
        Map.of(
            "module-info.java",
            "module acme.slow { requires ucm.api; provides ucm.api.Store with acme.slow.Slow; }",
            "Slow.java",
            slow.replace("return java.util.List.of();", forever)));
    StoreCatalog catalog = find();
    assertThat(UcmConfig.of("Slow", Map.of()).check(catalog).text())
        .contains("has not come back within 10 s [Slow]");
    UcmConfig config =
        UcmConfig.of("Fake", Map.of()).withTopLevel(Map.of("block_hasher", "odd"), "test");
    assertThat(config.check(catalog).text()).contains("block_hasher: is odd; found are md5-pickle");
    assertThat(catalog.problems()).singleElement().asString().contains("hang.jar", "not come back");
  }
}
