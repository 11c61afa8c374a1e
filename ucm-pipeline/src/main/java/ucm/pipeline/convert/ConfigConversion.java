package ucm.pipeline.convert;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import ucm.api.config.ConfigOrigin;
import ucm.api.config.ConfigProblem;
import ucm.pipeline.config.ConfigException;
import ucm.pipeline.config.ConfigReport;
import ucm.pipeline.yaml.ShellWords;
import ucm.pipeline.yaml.UcmYaml;
import ucm.pipeline.yaml.YamlSyntaxException;
import ucm.pipeline.yaml.YamlText;

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
    try {
      return convert(origin, file.toString(), YamlText.read(file));
    } catch (YamlSyntaxException e) {
      throw new ConfigException(e.problem());
    }
  }

  /** Converts a text; see {@link #convert(Origin, Path)}. */
  static Converted convert(Origin origin, String source, String text) {
    List<ConfigProblem> findings = new ArrayList<>();
    Ds3fsDraft draft = new Ds3fsDraft();
    try {
      switch (origin) {
        case LMCACHE -> new LmcacheSettings(UcmYaml.read(source, text), findings).into(draft);
        case RTP_LLM ->
            new RtpLlmSettings(source, ShellWords.read(source, text), findings).into(draft);
      }
    } catch (YamlSyntaxException e) {
      throw new ConfigException(e.problem());
    }
    ConfigReport report = new ConfigReport(findings);
    if (report.hasErrors()) {
      throw new ConfigException(report);
    }
    return new Converted(draft.yaml(source, report), report);
  }

  /** Reports a setting that is not taken over. */
  static ConfigProblem leftOut(ConfigOrigin at, String key, String why) {
    return ConfigProblem.warning(at, key, "is left out: " + why);
  }
}
