package ucm.pipeline.config;

import java.util.List;
import ucm.api.StoreException;

/** A configuration cannot be used; the message is the whole report. */
public final class ConfigException extends StoreException {

  private static final long serialVersionUID = 1L;

  private final transient ConfigReport report;

  public ConfigException(ConfigReport report) {
    super(report.text());
    this.report = report;
  }

  public ConfigException(ConfigFinding finding) {
    this(new ConfigReport(List.of(finding)));
  }

  /** Everything that was found. */
  public ConfigReport report() {
    return report;
  }
}
