package ucm.pipeline.convert;

import java.nio.file.Path;
import ucm.pipeline.config.ConfigException;
import ucm.pipeline.config.ConfigReport;
import ucm.pipeline.config.UcmYaml;
import ucm.pipeline.config.YamlText;

/**
 * Turns the configuration of another KV cache that keeps its blocks in 3FS into UCM's, for {@code
 * Cache|Ds3fs}. What has no counterpart is reported, in the result's report and in comments of its text.
 * Opens nothing but the file it reads.
 */
public final class ConfigConversion {

  /**
   * What came of it.
   *
   * @param yaml a configuration file of UCM, with comments
   * @param report what could not be taken over, as warnings
   */
  public record Converted(String yaml, ConfigReport report) {}

  public enum Origin {
    /** YAML of LMCache, with its hf3fs backend. */
    LMCACHE,
    /** Arguments and environment of RTP-LLM, as words of a shell. */
    RTP_LLM
  }

  private ConfigConversion() {}

  /**
   * Converts a file.
   *
   * @throws ConfigException when it cannot be read, has bad values or keeps nothing in 3FS; all problems
   *     are in its report, with their places
   */
  public static Converted convert(Origin origin, Path file) {
    return convert(origin, file.toString(), YamlText.read(file));
  }

  /** Converts a text; see {@link #convert(Origin, Path)}. */
  static Converted convert(Origin origin, String source, String text) {
    Ds3fsDraft draft = new Ds3fsDraft();
    switch (origin) {
      case LMCACHE -> new LmcacheSettings(UcmYaml.read(source, text), draft).convert();
      case RTP_LLM -> new RtpLlmSettings(source, ShellWords.read(source, text), draft).convert();
    }
    return draft.finish(source);
  }
}
