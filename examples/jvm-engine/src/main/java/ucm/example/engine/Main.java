package ucm.example.engine;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.zip.CRC32;
import ucm.api.StoreException;
import ucm.pipeline.catalog.UnknownStageException;
import ucm.pipeline.config.ConfigException;
import ucm.pipeline.config.UcmConfig;

/**
 * Serves one made-up prompt and ends. Started twice with the same folder, the second process computes
 * one token of the prompt instead of all of them, and gets the same logits, bit for bit.
 */
public final class Main {

  private static final int BLOCKS = 256;
  private static final int CHUNK_TOKENS = 64;
  private static final int NEW_TOKENS = 4;

  private Main() {}

  /** Runs the engine; ends with exit code 2 when it was started or configured wrongly. */
  public static void main(String[] args) throws InterruptedException {
    if (args.length < 1
        || args.length > 3
        || (args.length > 1 && !args[1].matches("[1-9]\\d{0,6}"))) {
      System.err.println(
          "usage: Main FOLDER [PROMPT_TOKENS [layerwise|direct]], or Main CONFIG.yaml ...");
      System.exit(2);
    }
    int promptTokens = args.length > 1 ? Integer.parseInt(args[1]) : 320;
    boolean layerwise = args.length < 3 || args[2].equals("layerwise");
    try {
      run(config(args[0]), promptTokens, layerwise);
    } catch (ConfigException | UnknownStageException e) {
      System.err.println(e.getMessage());
      System.exit(2);
    } catch (StoreException e) {
      System.err.println(e.getMessage());
      System.exit(1);
    }
  }

  private static void run(UcmConfig file, int promptTokens, boolean layerwise)
      throws InterruptedException {
    Model model = new Model(ModelShape.SMALL, 42);
    int[] prompt =
        new SplittableRandom(7).ints(promptTokens, 0, model.shape().vocabulary()).toArray();
    UcmConfig config = file.withTopLevel(Map.of("use_layerwise", layerwise), "example");
    String instance = "example-" + ProcessHandle.current().pid();
    try (Engine engine = new Engine(model, config, instance, BLOCKS, CHUNK_TOKENS)) {
      Engine.Completion completion = engine.complete("request-1", prompt, NEW_TOKENS);
      System.out.println("prompt tokens loaded: " + completion.loadedTokens());
      System.out.println("prompt tokens computed: " + (promptTokens - completion.loadedTokens()));
      System.out.println("logits after the prompt: " + checksum(completion.logits()));
      System.out.println("generated: " + completion.tokens());
    }
  }

  /** The operator's file, or a small pipeline over a folder. */
  private static UcmConfig config(String place) {
    if (place.endsWith(".yaml")) {
      return UcmConfig.read(Path.of(place));
    }
    return UcmConfig.of(
        "Cache|Posix",
        Map.of("storage_backends", List.of(place), "cache_buffer_capacity_gb", 0.0625));
  }

  private static String checksum(float[] logits) {
    CRC32 crc = new CRC32();
    for (float logit : logits) {
      int bits = Float.floatToRawIntBits(logit);
      crc.update(
          new byte[] {
            (byte) (bits >>> 24), (byte) (bits >>> 16), (byte) (bits >>> 8), (byte) bits
          });
    }
    return Long.toHexString(crc.getValue()) + " " + Arrays.toString(Arrays.copyOf(logits, 3));
  }
}
