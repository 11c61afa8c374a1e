package ucm.server.protocol;

import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import ucm.api.BlockIds;

/**
 * How values of a type are read and written. A record is its components in their order: {@code boolean}
 * is a {@code u8}, {@code int} a {@code u32} of at most 2^31 - 1, {@code long} a {@code u64}; where that
 * is not so, {@link Wire} says it.
 *
 * @param leastBytes the least that a value takes
 */
record RecordCodec<T>(int leastBytes, Reading<T> reading, Writing<T> writing) {

  interface Reading<T> {
    T read(FrameReader from) throws ProtocolException;
  }

  interface Writing<T> {
    void write(FrameWriter to, T value);
  }

  private record Field(Method accessor, RecordCodec<Object> codec) {}

  private static final RecordCodec<Integer> HANDLE =
      new RecordCodec<>(Integer.BYTES, FrameReader::handle, FrameWriter::u32);

  private static final Map<Type, RecordCodec<?>> PLAIN =
      Map.of(
          boolean.class,
          new RecordCodec<Boolean>(1, from -> from.u8() != 0, (to, is) -> to.u8(is ? 1 : 0)),
          int.class,
          new RecordCodec<Integer>(Integer.BYTES, FrameReader::u32, FrameWriter::u32),
          Integer.class,
          HANDLE,
          long.class,
          new RecordCodec<Long>(Long.BYTES, FrameReader::u64, FrameWriter::u64),
          String.class,
          new RecordCodec<>(Integer.BYTES, FrameReader::string, FrameWriter::string),
          byte[].class,
          new RecordCodec<>(Integer.BYTES, FrameReader::bytes, FrameWriter::bytes),
          int[].class,
          new RecordCodec<>(Integer.BYTES, FrameReader::ints, FrameWriter::ints),
          BlockIds.class,
          new RecordCodec<>(Integer.BYTES, FrameReader::ids, FrameWriter::ids));

  private static final ClassValue<RecordCodec<Object>> RECORDS =
      new ClassValue<>() {
        @Override
        protected RecordCodec<Object> computeValue(Class<?> type) {
          return ofRecord(type);
        }
      };

  /** The codec of a type: one of the plain ones, a list, or a record. */
  @SuppressWarnings("unchecked") // Each codec is found by its type.
  static RecordCodec<Object> of(Type type) {
    RecordCodec<?> plain = PLAIN.get(type);
    if (plain != null) {
      return (RecordCodec<Object>) plain;
    }
    if (type instanceof ParameterizedType list) {
      RecordCodec<Object> element = of(list.getActualTypeArguments()[0]);
      return new RecordCodec<>(
          Integer.BYTES, element::readList, (to, all) -> element.writeList(to, (List<?>) all));
    }
    return RECORDS.get((Class<?>) type);
  }

  private static RecordCodec<Object> ofRecord(Class<?> type) {
    RecordComponent[] components = type.getRecordComponents();
    List<Field> fields =
        Arrays.stream(components).map(one -> new Field(one.getAccessor(), of(one))).toList();
    Class<?>[] types =
        Arrays.stream(components).map(RecordComponent::getType).toArray(Class<?>[]::new);
    int least = fields.stream().mapToInt(field -> field.codec.leastBytes).sum();
    try {
      Constructor<?> constructor = type.getDeclaredConstructor(types);
      return new RecordCodec<>(
          least, from -> read(constructor, fields, from), (to, value) -> write(fields, to, value));
    } catch (NoSuchMethodException e) {
      throw new IllegalStateException(type + " is no record", e);
    }
  }

  @SuppressWarnings("unchecked") // The annotation fits the type.
  private static RecordCodec<Object> of(RecordComponent component) {
    Wire wire = component.getAnnotation(Wire.class);
    RecordCodec<?> codec =
        switch (wire == null ? null : wire.value()) {
          case null -> of(component.getGenericType());
          case U8 -> new RecordCodec<Integer>(Byte.BYTES, FrameReader::u8, FrameWriter::u8);
          case U16 -> new RecordCodec<Integer>(Short.BYTES, FrameReader::u16, FrameWriter::u16);
          case HANDLE -> HANDLE;
          case ADDED -> {
            RecordCodec<Object> list = of(component.getGenericType());
            yield new RecordCodec<>(
                0, from -> from.hasMore() ? list.reading.read(from) : List.of(), list.writing);
          }
        };
    return (RecordCodec<Object>) codec;
  }

  private static Object read(Constructor<?> constructor, List<Field> fields, FrameReader from)
      throws ProtocolException {
    Object[] values = new Object[fields.size()];
    for (int i = 0; i < values.length; i++) {
      values[i] = fields.get(i).codec.reading.read(from);
    }
    try {
      return constructor.newInstance(values);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }

  private static void write(List<Field> fields, FrameWriter to, Object value) {
    for (Field field : fields) {
      try {
        field.codec.writing.write(to, field.accessor.invoke(value));
      } catch (ReflectiveOperationException e) {
        throw new IllegalStateException(e);
      }
    }
  }

  private List<T> readList(FrameReader from) throws ProtocolException {
    int count = from.count(leastBytes);
    List<T> all = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      all.add(reading.read(from));
    }
    return all;
  }

  @SuppressWarnings("unchecked") // A list of this type.
  private void writeList(FrameWriter to, List<?> all) {
    to.u32(all.size());
    all.forEach(one -> writing.write(to, (T) one));
  }
}
