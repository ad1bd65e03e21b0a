//! Verbs of requests, messages and streams: `tools.nodetool.TpStats`, `NetStats`,
//! `ProxyHistograms`, `GetStreamThroughput` and their kin.

use super::args::Args;
use super::{StatsFormat, VerbError, refused, stats_format};

/// Bits of a second's throughput in a megabit, in bytes.
const MEGABIT_BYTES: u64 = 125_000;
const ONE_FLAG: &str = "You cannot use more than one flag with this command";

/// A verb of requests, messages and streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkVerb {
    /// `tpstats`
    PoolStats {
        /// Of `-F`.
        format: Option<StatsFormat>,
    },
    /// `netstats`
    NetStats {
        /// Bytes with their units.
        human_readable: bool,
        /// Addresses with ports.
        print_port: bool,
    },
    /// `proxyhistograms`
    ProxyHistograms,
    /// `getstreamthroughput`, `getinterdcstreamthroughput`
    GetStreamLimit {
        /// Which.
        of: StreamLimit,
        /// In what it is shown.
        unit: RateUnit,
    },
    /// `setstreamthroughput`, `setinterdcstreamthroughput`
    SetStreamLimit {
        /// Which.
        of: StreamLimit,
        /// 0 is no limit.
        bytes_per_second: u64,
    },
}

/// Which limit of what is sent to other nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimit {
    /// Of whole SSTables; of parts, if not.
    pub is_whole: bool,
    /// To other data centres; to all nodes, if not.
    pub is_far: bool,
}

/// In what a rate is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateUnit {
    /// Megabits a second, if they are whole.
    Megabits,
    /// Megabits a second.
    PreciseMegabits,
    /// MiB a second.
    Mebibytes,
}

/// The verb of that name, if it is one of these.
pub(super) fn parse(name: &str, args: &mut Args) -> Result<Option<NetworkVerb>, VerbError> {
    Ok(Some(match name {
        "getinterdcstreamthroughput" => get_limit(args, true)?,
        "getstreamthroughput" => get_limit(args, false)?,
        "setinterdcstreamthroughput" => set_limit(args, true)?,
        "setstreamthroughput" => set_limit(args, false)?,
        "netstats" => NetworkVerb::NetStats {
            human_readable: args.flag(&["-H", "--human-readable"]),
            print_port: args.print_port,
        },
        "proxyhistograms" => NetworkVerb::ProxyHistograms,
        "tpstats" => {
            let format = stats_format(args, "arguments for -F are json,yaml only.")?;
            NetworkVerb::PoolStats { format }
        }
        _ => return Ok(None),
    }))
}

fn get_limit(args: &mut Args, is_far: bool) -> Result<NetworkVerb, VerbError> {
    let is_whole = args.flag(&["-e", "--entire-sstable-throughput"]);
    let mebibytes = args.flag(&["-m", "--mib"]);
    let precise = args.flag(&["-d", "--precise-mbit"]);
    let unit = match (is_whole, mebibytes, precise) {
        (true, false, false) | (false, true, false) => RateUnit::Mebibytes,
        (false, false, true) => RateUnit::PreciseMegabits,
        (false, false, false) => RateUnit::Megabits,
        _ => return refused(ONE_FLAG),
    };
    Ok(NetworkVerb::GetStreamLimit { of: StreamLimit { is_whole, is_far }, unit })
}

/// What Cassandra says of a rate below 0.
pub(super) const NEGATIVE_RATE: &str = "Invalid data rate: value must be non-negative";

fn set_limit(args: &mut Args, is_far: bool) -> Result<NetworkVerb, VerbError> {
    let is_whole = args.flag(&["-e", "--entire-sstable-throughput"]);
    let mebibytes = args.flag(&["-m", "--mib"]);
    if is_whole && mebibytes {
        return refused("You cannot use -e and -m at the same time");
    }
    let title = if is_far { "inter_dc_stream_throughput" } else { "stream_throughput" };
    let Some(text) = args.take() else {
        return refused(format!("Required parameters are missing: {title}"));
    };
    let Ok(value) = text.parse::<i32>() else {
        return refused(format!("{title}: can not convert \"{text}\" to a int"));
    };
    let Ok(value) = u32::try_from(value) else { return refused(NEGATIVE_RATE) };
    let unit = if is_whole || mebibytes { 1 << 20 } else { MEGABIT_BYTES };
    let bytes_per_second = u64::from(value) * unit;
    Ok(NetworkVerb::SetStreamLimit { of: StreamLimit { is_whole, is_far }, bytes_per_second })
}
