package ucm.store.valkey;

import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.codec.ToByteBufEncoder;
import io.netty.buffer.ByteBuf;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** Tells the client how keys become bytes, and lets shards write themselves into its buffers. */
final class ShardCodec
    implements RedisCodec<String, ShardMove>, ToByteBufEncoder<String, ShardMove> {

  @Override
  public String decodeKey(ByteBuffer bytes) {
    return StandardCharsets.UTF_8.decode(bytes).toString();
  }

  @Override
  public ByteBuffer encodeKey(String key) {
    return StandardCharsets.UTF_8.encode(key);
  }

  @Override
  public void encodeKey(String key, ByteBuf target) {
    target.writeCharSequence(key, StandardCharsets.UTF_8);
  }

  @Override
  public void encodeValue(ShardMove value, ByteBuf target) {
    value.writeTo(target);
  }

  @Override
  public int estimateSize(Object keyOrValue) {
    return keyOrValue instanceof ShardMove move
        ? move.valueSize()
        : ((String) keyOrValue).getBytes(StandardCharsets.UTF_8).length;
  }

  @Override
  public boolean isEstimateExact() {
    return true;
  }

  @Override
  public ShardMove decodeValue(ByteBuffer bytes) {
    throw new UnsupportedOperationException("answers go to a MoveReply");
  }

  @Override
  public ByteBuffer encodeValue(ShardMove value) {
    throw new UnsupportedOperationException("shards are written by encodeValue(value, buffer)");
  }
}
