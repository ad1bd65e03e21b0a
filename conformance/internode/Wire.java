package org.apache.cassandra.net;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.TimeUnit;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.UnpooledByteBufAllocator;

import org.apache.cassandra.exceptions.RequestFailureReason;
import org.apache.cassandra.io.util.DataOutputBuffer;
import org.apache.cassandra.locator.InetAddressAndPort;
import org.apache.cassandra.tracing.Tracing;
import org.apache.cassandra.utils.ByteBufferUtil;
import org.apache.cassandra.utils.TimeUUID;

/** What Cassandra's own classes make of handshakes, frames, messages and the table of verbs. */
class Wire
{
    static final int VERSION = 12;

    static void all() throws Exception
    {
        verbs();
        handshakes();
        frames();
        messages();
    }

    static void verbs()
    {
        for (Verb verb : Verb.values())
        {
            if (verb.name().startsWith("_") || verb.name().startsWith("UNUSED") || verb == Verb.REQUEST_RSP || verb == Verb.INTERNAL_RSP)
                continue;
            String expires;
            try { expires = Long.toString(TimeUnit.NANOSECONDS.toMillis(verb.expiresAfterNanos())); }
            catch (IllegalStateException e) { expires = "-"; }
            Vectors.line("verb", verb.id + " " + verb + " " + verb.priority + " " + expires + " "
                                 + (verb.responseVerb == null ? "-" : verb.responseVerb) + " " + verb.isResponse());
        }
        for (RequestFailureReason reason : RequestFailureReason.values())
            Vectors.line("reason", reason.code + " " + reason);
    }

    static void handshakes() throws Exception
    {
        InetAddressAndPort[] froms = { InetAddressAndPort.getByName("127.0.0.41:7000"), InetAddressAndPort.getByName("[2001:db8::1]:7012") };
        OutboundConnectionSettings.Framing[] framings = OutboundConnectionSettings.Framing.values();
        int[][] versions = { { 12, 12 }, { 12, 13 }, { 10, 12 }, { 12, 14 } };
        for (ConnectionType type : ConnectionType.values())
        {
            if (type == ConnectionType.LEGACY_MESSAGES)
                continue;
            for (OutboundConnectionSettings.Framing framing : framings)
            {
                if (type == ConnectionType.STREAMING && framing != OutboundConnectionSettings.Framing.UNPROTECTED)
                    continue;
                int n = type.id + framing.id;
                int[] v = versions[n % versions.length];
                ByteBuf bytes = Vectors.initiate(v[0], v[1], type, framing, froms[n % 2]);
                Vectors.line("initiate", type + " " + framing + " " + v[0] + " " + v[1] + " " + froms[n % 2].getHostAddressAndPort() + " " + ByteBufUtil.hexDump(bytes));
            }
        }
        for (int[] v : new int[][] { { 12, 12 }, { 12, 13 }, { 13, 13 }, { 12, 14 } })
        {
            ByteBuf bytes = new HandshakeProtocol.Accept(v[0], v[1]).encode(UnpooledByteBufAllocator.DEFAULT);
            Vectors.line("accept", v[0] + " " + v[1] + " " + ByteBufUtil.hexDump(bytes));
        }
    }

    static byte[] text(int length)
    {
        byte[] bytes = new byte[length];
        for (int i = 0; i < length; i++)
            bytes[i] = (byte) (i % 7 == 0 ? i * 31 : 'a');
        return bytes;
    }

    static void frames()
    {
        Map<String, FrameEncoder> encoders = new TreeMap<>();
        encoders.put("CRC", FrameEncoderCrc.instance);
        encoders.put("LZ4", FrameEncoderLZ4.fastInstance);
        encoders.put("UNPROTECTED", FrameEncoderUnprotected.instance);
        encoders.forEach((name, encoder) -> {
            for (byte[] payload : new byte[][] { "x".getBytes(StandardCharsets.UTF_8), text(500), text(90) })
                for (boolean contained : new boolean[] { true, false })
                {
                    FrameEncoder.Payload out = encoder.allocator().allocate(contained, payload.length);
                    out.buffer.put(payload);
                    out.finish();
                    Vectors.line("frame", name + " " + contained + " " + ByteBufferUtil.bytesToHex(ByteBuffer.wrap(payload)) + " "
                                          + ByteBufUtil.hexDump(encoder.encode(contained, out.buffer)));
                }
        });
    }

    static void messages() throws Exception
    {
        InetAddressAndPort from = InetAddressAndPort.getByName("127.0.0.41:7000");
        InetAddressAndPort other = InetAddressAndPort.getByName("127.0.0.42:7000");
        InetAddressAndPort third = InetAddressAndPort.getByName("[2001:db8::1]:7012");
        Map<ParamType, Object> params = new EnumMap<>(ParamType.class);
        message("plain", Verb.ECHO_REQ, NoPayload.noPayload, 1, 0, params, from);
        message("flags", Verb.ECHO_REQ, NoPayload.noPayload, 300, 7, params, from);
        long soon = org.apache.cassandra.utils.MonotonicClock.Global.approxTime.now() + TimeUnit.MILLISECONDS.toNanos(12345);
        print("failure", Message.failureResponse(70000, soon, RequestFailureReason.INCOMPATIBLE_SCHEMA));
        message("ping", Verb.PING_REQ, PingRequest.get(ConnectionType.LARGE_MESSAGES), 0xFFFFFFFFL, 1, params, from);
        params.put(ParamType.FORWARD_TO, new ForwardingInfo(Arrays.asList(other, third), new long[] { 5, 300 }));
        message("forward", Verb.ECHO_REQ, NoPayload.noPayload, 2, 1, params, from);
        params.clear();
        params.put(ParamType.RESPOND_TO, third);
        params.put(ParamType.TRACE_SESSION, TimeUUID.fromUuid(UUID.fromString("5c3b3720-e5dd-11f1-9a15-1b96078e4459")));
        params.put(ParamType.TRACE_TYPE, Tracing.TraceType.QUERY);
        message("traced", Verb.ECHO_RSP, NoPayload.noPayload, 3, 0, params, from);
        params.clear();
        params.put(ParamType.TOMBSTONE_FAIL, 100001);
        params.put(ParamType.TOMBSTONE_WARNING, 1001);
        params.put(ParamType.LOCAL_READ_SIZE_FAIL, 1L << 33);
        params.put(ParamType.LOCAL_READ_SIZE_WARN, 4096L);
        params.put(ParamType.ROW_INDEX_READ_SIZE_FAIL, 5000L);
        params.put(ParamType.ROW_INDEX_READ_SIZE_WARN, 6000L);
        Map<String, byte[]> custom = new TreeMap<>();
        custom.put("k\u00e9y", new byte[] { 1, 2, 3 });
        params.put(ParamType.CUSTOM_MAP, custom);
        message("warned", Verb.ECHO_RSP, NoPayload.noPayload, 4, 0, params, from);
        params.clear();
        for (ParamType type : ParamType.values())
            if (type.name().equals("TOO_MANY_REFERENCED_INDEXES_WARN") || type.name().equals("TOO_MANY_REFERENCED_INDEXES_FAIL"))
                params.put(type, 9);
        message("indexes", Verb.ECHO_RSP, NoPayload.noPayload, 5, 0, params, from);
    }

    static <T> void message(String name, Verb verb, T payload, long id, int flags, Map<ParamType, Object> params, InetAddressAndPort from) throws Exception
    {
        long now = org.apache.cassandra.utils.MonotonicClock.Global.approxTime.now();
        Message<T> message = Message.builder(verb, payload).from(from).withId(id).withFlags(flags).withParams(params)
                                    .withCreatedAt(now).withExpiresAt(now + TimeUnit.MILLISECONDS.toNanos(12345)).build();
        print(name, message);
    }

    static void print(String name, Message<?> message) throws Exception
    {
        try (DataOutputBuffer out = new DataOutputBuffer())
        {
            Message.serializer.serialize(message, out, VERSION);
            Vectors.line("message", name + " " + message.verb() + " " + message.id() + " " + ByteBufferUtil.bytesToHex(out.buffer()));
        }
    }
}
