//! Numbers and addresses in Cassandra's words.

use std::net::IpAddr;

use types::Address;

/// Units of memory, each 1024 of the one before.
const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// A number of bytes as `FBUtilities.prettyPrintMemory` prints it: `6.678KiB`, `0B`. Three places,
/// rounded half up. Java divides it as a `float` there, and so do we.
pub(crate) fn memory(bytes: u64) -> String {
    let tens = bytes.checked_ilog2().unwrap_or(0) / 10;
    let unit = UNITS.get(tens as usize).copied().unwrap_or_default();
    if tens == 0 {
        return format!("{bytes}{unit}");
    }
    // 24 bits of a float and 10 of 1000 fit into a double: nothing is rounded but at last
    let value = f64::from(bytes as f32) / (1_u64 << (10 * tens)) as f64;
    let thousandths = (value * 1000.0 + 0.5).floor() as u64;
    format!("{}.{:03}{unit}", thousandths / 1000, thousandths % 1000)
}

/// An address as `InetAddressAndPort.getHostAddressAndPort` has it: of IPv6 all eight groups.
pub(crate) fn address(address: &Address) -> String {
    let port = address.port;
    match address.ip {
        IpAddr::V4(four) => format!("{four}:{port}"),
        IpAddr::V6(six) => {
            let groups: Vec<String> = six.segments().iter().map(|g| format!("{g:x}")).collect();
            format!("[{}]:{port}", groups.join(":"))
        }
    }
}
