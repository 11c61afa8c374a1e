package ucm.server;

import java.io.EOFException;
import java.io.IOException;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import ucm.api.StoreException;
import ucm.server.protocol.Frame;
import ucm.server.protocol.FrameReader;
import ucm.server.protocol.FrameWriter;
import ucm.server.protocol.MessageType;
import ucm.server.protocol.ProtocolException;

/** An observer of a running daemon. Used by one thread. */
final class StatusClient implements AutoCloseable {

  private static final int MAGIC = 0x314D4355;
  private static final int OBSERVER = 2;

  private final SocketChannel channel;
  private int sequence;

  StatusClient(Path socket) throws IOException {
    byte[] token = Files.readAllBytes(ServerDirectory.tokenPath(socket));
    channel = SocketChannel.open(UnixDomainSocketAddress.of(socket));
    FrameWriter hello =
        new FrameWriter(MessageType.HELLO, ++sequence)
            .u32(MAGIC)
            .u16(1)
            .u16(1)
            .bytes(token)
            .u8(OBSERVER)
            .u32((int) ProcessHandle.current().pid())
            .string("ucm serve status");
    Frame _ = ask(hello, MessageType.WELCOME);
  }

  /** The daemon's status as JSON. */
  String status() throws IOException {
    Frame answer = ask(new FrameWriter(MessageType.STATUS, ++sequence), MessageType.STATUS_TEXT);
    try {
      return new FrameReader(answer.body()).string();
    } catch (ProtocolException e) {
      throw new IOException(e.getMessage(), e);
    }
  }

  private Frame ask(FrameWriter question, int expected) throws IOException {
    ByteBuffer bytes = question.end();
    while (bytes.hasRemaining()) {
      channel.write(bytes);
    }
    try {
      Frame answer = Frame.read(channel);
      if (answer == null) {
        throw new EOFException("the daemon closed the connection");
      }
      if (answer.type() == MessageType.REFUSED) {
        FrameReader body = new FrameReader(answer.body());
        int code = body.u16();
        throw new StoreException("the daemon refuses (" + code + "): " + body.string());
      }
      if (answer.type() != expected) {
        throw new IOException("the daemon answered with a message of type " + answer.type());
      }
      return answer;
    } catch (ProtocolException e) {
      throw new IOException(e.getMessage(), e);
    }
  }

  @Override
  public void close() throws IOException {
    channel.close();
  }
}
