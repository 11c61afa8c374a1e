package ucm.cli.output;

import java.io.PrintWriter;
import tools.jackson.databind.SerializationFeature;
import tools.jackson.databind.json.JsonMapper;

/** Prints plain maps, lists, texts and numbers as JSON. */
public final class Json {

  private static final JsonMapper MAPPER =
      JsonMapper.builder().enable(SerializationFeature.INDENT_OUTPUT).build();

  private Json() {}

  public static void print(PrintWriter out, Object data) {
    out.println(MAPPER.writeValueAsString(data));
  }
}
