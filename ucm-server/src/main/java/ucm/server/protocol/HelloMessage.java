package ucm.server.protocol;

import static ucm.server.protocol.Wire.As.HANDLE;
import static ucm.server.protocol.Wire.As.U16;
import static ucm.server.protocol.Wire.As.U8;

/**
 * HELLO: who a client is.
 *
 * @param lowest the lowest version of the protocol that it speaks
 * @param highest the highest one
 * @param token what lies beside the socket
 * @param role {@link #SCHEDULER}, {@link #WORKER} or {@link #OBSERVER}
 * @param processId its process
 * @param client its name, for people
 */
// Raw bytes on purpose. These records are not compared.
@SuppressWarnings("ArrayRecordComponent")
public record HelloMessage(
    @Wire(U16) int lowest,
    @Wire(U16) int highest,
    byte[] token,
    @Wire(U8) int role,
    @Wire(HANDLE) int processId,
    String client) {

  /** The only version of the protocol. */
  public static final int VERSION = 1;

  /** The scheduler side of an engine. */
  public static final int SCHEDULER = 0;

  /** A rank of an engine. */
  public static final int WORKER = 1;

  /** A client that belongs to no engine. */
  public static final int OBSERVER = 2;

  private static final int MAGIC = 0x314D4355;

  /** A client of this process and version. */
  public HelloMessage(byte[] token, int role, String client) {
    this(VERSION, VERSION, token, role, (int) ProcessHandle.current().pid(), client);
  }

  public static HelloMessage read(FrameReader body) throws ProtocolException {
    if (body.handle() != MAGIC) {
      throw new ProtocolException(
          ProtocolException.NOT_ADMITTED, "not admitted: this is no client of UCM");
    }
    return body.record(HelloMessage.class);
  }

  public FrameWriter write(FrameWriter to) {
    return to.u32(MAGIC).record(this);
  }
}
