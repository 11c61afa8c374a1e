package ucm.store.s3;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.function.Function;

/** Stands between a store and its server, and does wrong what it is told to, request by request. */
final class FaultProxy implements AutoCloseable {

  /** What a request is answered. */
  enum Fault {
    NONE,
    CUT_BODY,
    FLIP_BIT,
    FLIP_METADATA,
    NO_ANSWER,
    ONLY_HEAD,
    RESET,
    RESET_MID_PUT,
    SHORT_LENGTH,
    LONG_LENGTH,
    NONSENSE,
    STATUS_403,
    STATUS_404,
    STATUS_412,
    STATUS_500,
    STATUS_501,
    STATUS_503
  }

  /** The first line of a request and its headers. */
  record Asked(String method, String path, String head) {}

  private static final String METADATA = "x-amz-meta-ucm:";

  private final ServerSocket server;
  private final int upstream;
  private final CountDownLatch closed = new CountDownLatch(1);
  private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();
  final List<Asked> asked = new CopyOnWriteArrayList<>();
  private volatile Function<Asked, Fault> faults = _ -> Fault.NONE;
  private volatile Duration shift = Duration.ZERO;
  private volatile boolean tellsTime = true;

  FaultProxy(int upstream) throws IOException {
    this.upstream = upstream;
    server = new ServerSocket(0, 64, InetAddress.getLoopbackAddress());
    Thread.ofVirtual().start(this::accept);
  }

  String endpoint() {
    return "http://127.0.0.1:" + server.getLocalPort();
  }

  void fail(Function<Asked, Fault> how) {
    faults = how;
  }

  /** Fails each request of a method. */
  void fail(String method, Fault fault) {
    fail(one -> one.method.equals(method) ? fault : Fault.NONE);
  }

  /**
   * Has it be a server whose clock differs, by less than the quarter of an hour that the one behind it takes:
   * it refuses what was not signed at its time.
   */
  void shiftDates(Duration by) {
    shift = by;
  }

  /** Its answers say no more what time it is. */
  void dropDates() {
    tellsTime = false;
  }

  private Instant now() {
    return Instant.now().plus(shift);
  }

  private String dated(String head) {
    String date = DateTimeFormatter.RFC_1123_DATE_TIME.format(now().atZone(ZoneOffset.UTC));
    return head.replaceFirst("(?i)\\r\\ndate: *[^\\r]*", tellsTime ? "\r\nDate: " + date : "");
  }

  private boolean isOfNow(Asked one) {
    String signed =
        one.head
            .lines()
            .filter(line -> line.toLowerCase().startsWith("x-amz-date:"))
            .map(line -> line.substring(line.indexOf(':') + 1).strip())
            .findFirst()
            .orElseThrow();
    Instant at =
        LocalDateTime.parse(signed, DateTimeFormatter.ofPattern("yyyyMMdd'T'HHmmss'Z'"))
            .toInstant(ZoneOffset.UTC);
    return Duration.between(at, now()).abs().compareTo(Duration.ofMinutes(5)) < 0;
  }

  void heal() {
    fail(_ -> Fault.NONE);
  }

  long count(String method) {
    return asked.stream().filter(one -> one.method.equals(method)).count();
  }

  private void accept() {
    try {
      while (true) {
        Socket socket = server.accept();
        sockets.add(socket);
        Thread.ofVirtual().start(() -> serve(socket));
      }
    } catch (IOException e) {
      // It was closed.
    }
  }

  private void serve(Socket client) {
    try (client;
        InputStream in = client.getInputStream();
        OutputStream out = client.getOutputStream()) {
      client.setTcpNoDelay(true);
      String head = head(in);
      while (!head.isEmpty() && answer(client, head, in, out)) {
        head = head(in);
      }
    } catch (IOException | InterruptedException e) {
      // The client or the server has gone.
    } finally {
      sockets.remove(client);
    }
  }

  /** Answers one request; whether the connection goes on. */
  private boolean answer(Socket client, String head, InputStream in, OutputStream out)
      throws IOException, InterruptedException {
    String[] line = head.split(" ", 3);
    Asked one = new Asked(line[0], line[1], head);
    asked.add(one);
    Fault fault = faults.apply(one);
    int length = length(head);
    if (fault == Fault.RESET || fault == Fault.RESET_MID_PUT) {
      in.readNBytes(fault == Fault.RESET ? length : length / 2);
      client.setSoLinger(true, 0);
      return false;
    }
    byte[] body = in.readNBytes(length);
    if (!isOfNow(one)) {
      status(one, "403", out);
      return true;
    }
    if (fault == Fault.NO_ANSWER) {
      closed.await();
      return false;
    }
    if (fault == Fault.NONSENSE) {
      out.write("SSH-2.0-no server of objects\r\n\r\n".getBytes(ISO_8859_1));
      return false;
    }
    if (fault.name().startsWith("STATUS_")) {
      status(one, fault.name().substring("STATUS_".length()), out);
      return true;
    }
    try (Socket server = new Socket(InetAddress.getLoopbackAddress(), upstream)) {
      server.getOutputStream().write(head.getBytes(ISO_8859_1));
      server.getOutputStream().write(body);
      InputStream from = server.getInputStream();
      String answer = head(from);
      int size = one.method.equals("HEAD") ? 0 : length(answer);
      return spoil(fault, answer, from.readNBytes(size), out);
    }
  }

  /** An answer with all that a careless client would write into its log. */
  private void status(Asked one, String status, OutputStream out) throws IOException {
    String key = System.getenv("AWS_ACCESS_KEY_ID");
    String secret = System.getenv("AWS_SECRET_ACCESS_KEY");
    String body =
        "<Error><Code>Made%s</Code><AWSAccessKeyId>%s</AWSAccessKeyId><StringToSign>%s</StringToSign></Error>"
            .formatted(status, key, secret);
    String sent = one.method.equals("HEAD") ? "" : body;
    String head = "HTTP/1.1 %s Made\r\nContent-Length: %s\r\nX-Made: %s\r\nDate: now\r\n\r\n";
    out.write(dated(head.formatted(status, body.length(), secret)).getBytes(ISO_8859_1));
    out.write(sent.getBytes(ISO_8859_1));
  }

  private boolean spoil(Fault fault, String head, byte[] body, OutputStream out)
      throws IOException, InterruptedException {
    String spoilt = dated(head);
    int half = body.length / 2;
    if (fault == Fault.FLIP_METADATA) {
      int at = head.toLowerCase().indexOf(METADATA) + METADATA.length() + 60;
      char flipped = head.charAt(at) == 'A' ? 'B' : 'A';
      spoilt = head.substring(0, at) + flipped + head.substring(at + 1);
    } else if (fault == Fault.SHORT_LENGTH || fault == Fault.LONG_LENGTH) {
      int told = fault == Fault.SHORT_LENGTH ? half : body.length + 100;
      spoilt = head.replaceFirst("(?i)content-length: *[0-9]+", "Content-Length: " + told);
    } else if (fault == Fault.FLIP_BIT && body.length > 0) {
      body[half] ^= 4;
    }
    out.write(spoilt.getBytes(ISO_8859_1));
    if (fault == Fault.ONLY_HEAD) {
      out.flush();
      closed.await();
    }
    out.write(fault == Fault.CUT_BODY ? Arrays.copyOf(body, half) : body);
    out.flush();
    return fault == Fault.NONE || fault == Fault.FLIP_BIT || fault == Fault.FLIP_METADATA;
  }

  private static int length(String head) {
    return head.lines()
        .filter(line -> line.toLowerCase().startsWith("content-length:"))
        .mapToInt(line -> Integer.parseInt(line.substring(line.indexOf(':') + 1).strip()))
        .findFirst()
        .orElse(0);
  }

  private static String head(InputStream in) throws IOException {
    ByteArrayOutputStream head = new ByteArrayOutputStream();
    int end = 0;
    while (end < 4) {
      int next = in.read();
      if (next < 0) {
        return "";
      }
      head.write(next);
      end = next == "\r\n\r\n".charAt(end) ? end + 1 : next == '\r' ? 1 : 0;
    }
    return head.toString(ISO_8859_1);
  }

  @Override
  public void close() throws IOException {
    closed.countDown();
    server.close();
    for (Socket socket : sockets) {
      socket.close();
    }
  }
}
