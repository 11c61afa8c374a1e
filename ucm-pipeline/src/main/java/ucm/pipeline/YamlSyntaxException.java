package ucm.pipeline;

import ucm.api.ConfigOrigin;

/** A text is not the YAML it should be; carries the place. */
final class YamlSyntaxException extends Exception {

  private static final long serialVersionUID = 1L;

  private final transient ConfigOrigin at;

  YamlSyntaxException(ConfigOrigin at, String message) {
    super(message);
    this.at = at;
  }

  ConfigOrigin at() {
    return at;
  }

  /** What is wrong. */
  String problem() {
    return String.valueOf(getMessage());
  }
}
