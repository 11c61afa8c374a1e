package ucm.store.s3.client;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.ByteArrayOutputStream;
import java.net.URLEncoder;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import ucm.api.StoreException;
import ucm.store.s3.client.ObjectRequest.Method;
import ucm.store.s3.client.ObjectRequest.Source;

/**
 * The objects whose keys begin with a prefix, a page at a time, and their removal by many. For keys of letters,
 * digits and what needs no escape in XML, as those of blocks are; others are listed. Blocks while a server answers.
 */
public final class ObjectList {

  /** What a request lists, or removes, at the most. */
  public static final int PAGE = 1000;

  private static final Pattern ENTRY =
      Pattern.compile("<Contents>(.*?)</Contents>", Pattern.DOTALL);
  private static final Pattern FIELD = Pattern.compile("<(Key|LastModified|Size)>([^<]*)</");

  private final ObjectClient client;
  private final String prefix;
  private final long nanos;

  /** One object. */
  public record Listed(String key, Instant modified, long size) {}

  /** Objects below a prefix, with so much time for each request. */
  public ObjectList(ObjectClient client, String prefix, long nanos) {
    this.client = client;
    this.prefix = prefix + "/";
    this.nanos = nanos;
  }

  /**
   * Shows all objects in the order of their keys.
   *
   * @param visitor returns whether it wants another one
   * @return whether all were shown
   * @throws StoreException when the bucket does not list them
   */
  public boolean each(Predicate<Listed> visitor) {
    String after = "";
    for (List<Listed> page = page(after); !page.isEmpty(); page = page(after)) {
      if (!page.stream().allMatch(visitor)) {
        return false;
      }
      after = page.getLast().key();
    }
    return true;
  }

  /**
   * The next objects in the order of their keys; empty at the end.
   *
   * @param after the key of the last one known; empty for none
   * @throws StoreException when the bucket does not list them
   */
  public List<Listed> page(String after) {
    String query = "list-type=2&max-keys=" + PAGE + "&prefix=" + encoded(prefix);
    query += after.isEmpty() ? "" : "&start-after=" + encoded(after);
    String said = ask("list", new ObjectRequest(Method.GET, "", query, Map.of(), null, null, 0));
    List<Listed> listed = new ArrayList<>();
    for (Matcher entry = ENTRY.matcher(said); entry.find(); ) {
      String key = "";
      Instant modified = Instant.MAX;
      long size = 0;
      for (Matcher field = FIELD.matcher(entry.group(1)); field.find(); ) {
        switch (field.group(1)) {
          case "Key" -> key = plain(field.group(2));
          case "Size" -> size = Long.parseLong(field.group(2));
          default -> modified = Instant.parse(field.group(2));
        }
      }
      listed.add(new Listed(key, modified, size));
    }
    return listed;
  }

  /** As signatures want it. */
  private static String encoded(String text) {
    return URLEncoder.encode(text, UTF_8).replace("+", "%20").replace("*", "%2A");
  }

  /** Others than blocks may have any keys. */
  private static String plain(String xml) {
    return xml.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#34;", "\"")
        .replace("&apos;", "'")
        .replace("&#39;", "'")
        .replace("&amp;", "&");
  }

  /**
   * Removes objects, at most {@link #PAGE}; those that are not there count as removed.
   *
   * @throws StoreException when the bucket does not remove them
   */
  public void remove(List<String> keys) {
    StringBuilder body = new StringBuilder("<Delete><Quiet>true</Quiet>");
    keys.forEach(key -> body.append("<Object><Key>").append(key).append("</Key></Object>"));
    byte[] sent = body.append("</Delete>").toString().getBytes(UTF_8);
    Map<String, String> headers = Map.of("Content-MD5", md5(sent), "Content-Type", "text/xml");
    ObjectRequest request =
        new ObjectRequest(
            Method.POST,
            "",
            "delete=",
            headers,
            Source.of(ByteBuffer.wrap(sent)),
            null,
            sent.length);
    if (ask("remove", request).contains("<Error>")) {
      throw new StoreException("S3 did not remove all of " + keys.size() + " objects");
    }
  }

  /** The body of the answer. */
  private String ask(String what, ObjectRequest request) {
    ByteArrayOutputStream said = new ByteArrayOutputStream();
    ObjectRequest.Sink sink =
        bytes -> {
          byte[] some = new byte[bytes.remaining()];
          bytes.get(some);
          said.writeBytes(some);
        };
    ObjectReply reply = client.send(request.into(sink), nanos).join();
    if (!reply.ok()) {
      throw new StoreException(
          "S3 did not " + what + " objects below " + prefix + ": " + reply.describe());
    }
    return said.toString(UTF_8);
  }

  private static String md5(byte[] bytes) {
    try {
      return Base64.getEncoder().encodeToString(MessageDigest.getInstance("MD5").digest(bytes));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }
}
