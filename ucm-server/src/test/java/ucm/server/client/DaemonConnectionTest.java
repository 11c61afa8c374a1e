package ucm.server.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.server.protocol.Frame;
import ucm.server.protocol.FrameWriter;
import ucm.server.protocol.HelloMessage;
import ucm.server.protocol.MessageType;
import ucm.server.protocol.ProtocolException;

final class DaemonConnectionTest {

  @TempDir private Path folder;

  @Test
  void saysInWordsThatTheDaemonTakesNothing() throws Exception {
    Path socket = folder.resolve("ucm.sock");
    Path token = Files.write(Daemon.tokenPath(socket), new byte[32]);
    Files.setPosixFilePermissions(token, PosixFilePermissions.fromString("rw-------"));
    try (ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
      server.bind(UnixDomainSocketAddress.of(socket));
      CompletableFuture<SocketChannel> daemon =
          CompletableFuture.supplyAsync(() -> welcome(server), work -> new Thread(work).start());
      try (DaemonConnection connection =
          DaemonConnection.open(socket, HelloMessage.OBSERVER, "test")) {
        byte[] much = new byte[1 << 16];
        assertThatThrownBy(
                () -> {
                  while (true) {
                    connection.tell(MessageType.PING, body -> body.bytes(much));
                  }
                })
            .isInstanceOf(IOException.class)
            .hasMessage("it took no bytes for 1 s");
        assertThat(connection.serve()).hasMessage("the connection is closed");
      }
      daemon.join().close();
    }
  }

  /** A daemon that admits a client and does nothing more. */
  private static SocketChannel welcome(ServerSocketChannel server) {
    try {
      SocketChannel client = server.accept();
      Frame hello = Frame.read(client);
      new FrameWriter(MessageType.WELCOME, hello.sequence()).writeTo(client);
      return client;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (ProtocolException e) {
      throw new IllegalStateException(e);
    }
  }
}
