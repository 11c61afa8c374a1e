package ucm.pipeline.yaml;

import ucm.api.config.ConfigOrigin;

/** A text is not the YAML it should be; carries the position. */
public final class YamlSyntaxException extends Exception {

  private static final long serialVersionUID = 1L;

  private final transient ConfigOrigin at;

  YamlSyntaxException(ConfigOrigin at, String message) {
    super(message);
    this.at = at;
  }

  public ConfigOrigin at() {
    return at;
  }

  /** What is wrong. */
  public String problem() {
    return String.valueOf(getMessage());
  }
}
