//! Verbs of requests and messages: `tools.nodetool.TpStats`, `NetStats`, `ProxyHistograms`.

use super::VerbError;
use super::args::Args;

/// A verb of requests and messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkVerb {
    /// `tpstats`
    PoolStats,
    /// `netstats`
    NetStats,
    /// `proxyhistograms`
    ProxyHistograms,
}

/// The verb of that name, if it is one of these.
pub(super) fn parse(name: &str, args: &mut Args) -> Result<Option<NetworkVerb>, VerbError> {
    Ok(Some(match name {
        "netstats" => {
            // bytes are those of streams, of which there are none
            args.flag(&["-H", "--human-readable"]);
            NetworkVerb::NetStats
        }
        "proxyhistograms" => NetworkVerb::ProxyHistograms,
        "tpstats" => {
            args.not_served(&["-F", "--format"])?;
            NetworkVerb::PoolStats
        }
        _ => return Ok(None),
    }))
}
