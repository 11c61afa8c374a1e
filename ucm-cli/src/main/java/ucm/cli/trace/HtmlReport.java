package ucm.cli.trace;

import java.io.IOException;
import java.io.InputStream;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Map;
import tools.jackson.databind.json.JsonMapper;
import ucm.cli.output.OutputFile;
import ucm.lite.trace.FileFault;

/**
 * Writes a report as one HTML file that needs nothing else: style, script, chart library (Apache
 * ECharts) and data are inside, and its content security policy forbids to fetch anything.
 */
public final class HtmlReport {

  private static final String FOLDER = "report/";

  /** In the order of their places in the page; {@code data} is what its script reads. */
  private static final String[] PARTS = {
    "report.css", "echarts.common.min.js", "data", "report.js"
  };

  private HtmlReport() {}

  /** Writes plain maps, lists, texts and finite numbers; the file appears when it is complete. */
  public static void write(Path file, Map<String, Object> data, PrintWriter standardOutput) {
    try (OutputFile output = new OutputFile(file, standardOutput)) {
      Writer page = output.writer();
      String rest = text("report.html");
      for (String part : PARTS) {
        rest = copyUpTo("@@" + part + "@@", rest, page);
        page.write(part.equals("data") ? json(data) : text(part));
      }
      page.write(rest);
      output.complete();
    } catch (IOException e) {
      throw new UncheckedIOException("cannot write " + file + ": " + FileFault.of(e), e);
    }
  }

  private static String json(Map<String, Object> data) {
    // Within a script element, nothing but "<" could end it or begin a comment.
    return JsonMapper.builder().build().writeValueAsString(data).replace("<", "\\u003c");
  }

  /** Writes the text before a marker, and returns the text after it. */
  private static String copyUpTo(String marker, String text, Writer page) throws IOException {
    int at = text.indexOf(marker);
    if (at < 0) {
      throw new IllegalStateException("the page has no place for " + marker);
    }
    page.write(text, 0, at);
    return text.substring(at + marker.length());
  }

  private static String text(String name) throws IOException {
    try (InputStream stream = HtmlReport.class.getResourceAsStream(FOLDER + name)) {
      if (stream == null) {
        throw new IllegalStateException("this build lacks " + name);
      }
      return new String(stream.readAllBytes(), StandardCharsets.UTF_8);
    }
  }
}
