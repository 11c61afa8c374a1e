package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.admin.HealthCheck.Finding;
import ucm.api.admin.HealthCheck.Status;
import ucm.cli.Main;
import ucm.cli.runtime.Cleanup;
import ucm.cli.runtime.EngineConfig;
import ucm.cli.runtime.EngineMemory;
import ucm.cli.setup.PipelineProbe;
import ucm.pipeline.Pipeline;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.UcmConfig;
import ucm.testkit.PromptStore;
import ucm.testkit.fault.MemoryStore;

/** What commands write into stores is removed, and {@code ucm store rm} removes what it is told. */
class BlockRemovalTest {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(4096, 4096, 4096);
  private static final BlockIds IDS = BlockIds.wrap(new long[] {1, 2, 3, 4, 5, 6});

  @TempDir private Path folder;

  private List<Finding> probe(String name, StoreCatalog catalog) throws InterruptedException {
    try (Cleanup cleanup = new Cleanup()) {
      return new PipelineProbe(UcmConfig.of(name, Map.of()), catalog, cleanup).run();
    }
  }

  @Test
  void theDoctorRemovesItsBlockFromAStoreWithoutDirectories() throws InterruptedException {
    MemoryStore.Volume volume = new MemoryStore.Volume();
    List<Finding> found =
        probe("Memory", StoreCatalog.of(Map.of("Memory", () -> new MemoryStore(volume))));
    assertThat(found).extracting(Finding::status).containsExactly(Status.OK);
    assertThat(found.getFirst().found()).contains("removed again");
    assertThat(volume.size()).isZero();
  }

  @Test
  void theDoctorSendsNoBlockIntoAStoreThatCannotRemoveIt() throws InterruptedException {
    List<Finding> found = probe("Prompt", StoreCatalog.of(Map.of("Prompt", PromptStore::new)));
    assertThat(found).extracting(Finding::status).containsExactly(Status.WARNING);
    assertThat(found.getFirst().found()).contains("no block was sent", "cannot remove blocks");
  }

  private Path fill() throws IOException, InterruptedException {
    Path blocks = Files.createDirectory(folder.resolve("blocks"));
    Map<String, Object> values = new LinkedHashMap<>(EngineConfig.of(LAYOUT));
    values.put("storage_backends", blocks.toString());
    try (Pipeline pipeline = Pipeline.open(UcmConfig.of("Posix", values), StoreCatalog.find());
        EngineMemory memory = new EngineMemory(LAYOUT, IDS.size())) {
      memory.fill(IDS, 0, IDS.size());
      pipeline.dump(memory.transfer(IDS, 0, IDS.size())).await(Duration.ofMinutes(1)).requireOk();
      assertThat(pipeline.flush(Duration.ofMinutes(1)).ok()).as("flushed").isTrue();
    }
    return UcmYaml.in(folder, "store_pipeline: \"Posix\"", "storage_backends: \"" + blocks + "\"");
  }

  private record Ended(int code, String text) {}

  private static Ended rm(Path config, String... more) {
    StringWriter out = new StringWriter();
    String[] args = new String[more.length + 4];
    args[0] = "store";
    args[1] = "rm";
    args[2] = "--config";
    args[3] = config.toString();
    System.arraycopy(more, 0, args, 4, more.length);
    int code = Main.run(new PrintWriter(out, true), new PrintWriter(out, true), args);
    return new Ended(code, out.toString());
  }

  private boolean isThere(int i) {
    return Files.exists(folder.resolve("blocks/000").resolve(IDS.hex(i)));
  }

  @Test
  void removesTheBlocksOfIdsAndOfAList() throws IOException, InterruptedException {
    Path config = fill();
    assertThat(isThere(0) && isThere(1) && isThere(2)).as("all three are stored").isTrue();
    String absent = "f".repeat(32);
    Ended one = rm(config, IDS.hex(0), absent, "--yes");
    assertThat(one.code()).as(one.text()).isZero();
    assertThat(one.text()).contains("removed 1 blocks; 1 of the 2 asked for were not there");
    assertThat(isThere(0)).as("the block that was named").isFalse();
    assertThat(isThere(1)).as("a block that was not named").isTrue();
    Path list = Files.writeString(folder.resolve("ids"), IDS.hex(1) + "\n\n" + IDS.hex(2) + "\n");
    Ended all = rm(config, "--all", list.toString(), "--yes", "--json");
    assertThat(all.code()).as(all.text()).isZero();
    assertThat(all.text()).contains("removed_blocks");
    assertThat(isThere(1) || isThere(2)).as("a block of the list is left").isFalse();
  }

  @Test
  void removesNothingUnasked() throws IOException, InterruptedException {
    Path config = fill();
    Ended unasked = rm(config, IDS.hex(0));
    assertThat(unasked.code()).as(unasked.text()).isEqualTo(2);
    assertThat(unasked.text()).contains("--yes");
    assertThat(isThere(0)).as("the block is left").isTrue();
    assertThat(rm(config, "--yes").text()).contains("name ids of blocks");
    Ended wrong = rm(config, "12", "--yes");
    assertThat(wrong.code()).isEqualTo(2);
    assertThat(wrong.text()).contains("32 hexadecimal digits").contains("\"12\"");
  }
}
