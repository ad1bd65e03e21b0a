//! Frames of version 4, found by their lengths alone.

/// Bytes before a frame's body: version, flags, stream (2), opcode, length of the body (4).
pub const HEADER: usize = 9;
/// Requests under way on a connection, at most: each has a stream of its own.
pub const DEPTH_MAX: usize = 32_767;
/// Bytes that are read at once.
pub const READ: usize = 64 << 10;

/// The first frame in `bytes`, if it is whole.
pub fn first(bytes: &[u8]) -> Option<&[u8]> {
    let length = bytes.get(5..HEADER)?.try_into().ok().map(u32::from_be_bytes)?;
    bytes.get(..HEADER + usize::try_from(length).ok()?)
}

/// The stream of a frame.
pub fn stream(frame: &[u8]) -> usize {
    match frame {
        [_, _, high, low, ..] => usize::from(u16::from_be_bytes([*high, *low])),
        _ => 0,
    }
}

/// Gives a frame a stream.
pub fn set_stream(frame: &mut [u8], stream: usize) {
    if let Some(place) = frame.get_mut(2..4) {
        place.copy_from_slice(&(stream as u16).to_be_bytes());
    }
}

/// Is it an answer that says what went wrong?
pub fn is_error(frame: &[u8]) -> bool {
    frame.get(4) == Some(&0)
}
