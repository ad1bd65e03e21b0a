//! Snitches that ask a cloud where this machine is: what they ask for, and what an answer means.
//! As `AbstractCloudMetadataServiceSnitch` and its kin; nothing is sent here.

use std::collections::BTreeMap;
use std::time::Duration;

use types::properties;

/// What the service's token may be worth, in seconds, and how long it is where nothing is said.
const TOKEN_SECONDS: std::ops::RangeInclusive<u32> = 30..=21_600;
/// How long a request may take where nothing is said.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Where nothing is said of a node.
pub(crate) const UNKNOWN: (&str, &str) = ("UNKNOWN-DC", "UNKNOWN-RACK");

/// A cloud, by the snitch that asks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cloud {
    /// `Ec2Snitch`.
    Ec2,
    /// `Ec2MultiRegionSnitch`: as that, and other nodes know this one by its public address.
    Ec2MultiRegion,
    /// `GoogleCloudSnitch`.
    Google,
    /// `AlibabaCloudSnitch`.
    Alibaba,
}

/// A request to a metadata service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataRequest {
    /// `GET` or `PUT`.
    pub method: &'static str,
    /// With its leading slash.
    pub path: &'static str,
    /// Names and values.
    pub headers: Vec<(&'static str, String)>,
}

/// Where and how a cloud is asked, by the text of `cassandra-rackdc.properties`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataService {
    cloud: Cloud,
    /// The host, without a port.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How long connecting and each answer may take.
    pub timeout: Duration,
    /// How long a token is good for, in seconds; none: the service is asked without one.
    token_seconds: Option<u32>,
    legacy_names: bool,
    suffix: String,
}

impl Cloud {
    /// By the name of its snitch, without a package.
    pub fn of_snitch(name: &str) -> Option<Self> {
        Some(match name {
            "Ec2Snitch" => Self::Ec2,
            "Ec2MultiRegionSnitch" => Self::Ec2MultiRegion,
            "GoogleCloudSnitch" => Self::Google,
            "AlibabaCloudSnitch" => Self::Alibaba,
            _ => return None,
        })
    }

    /// Is it asked for addresses too?
    pub fn has_addresses(self) -> bool {
        self == Self::Ec2MultiRegion
    }

    fn is_ec2(self) -> bool {
        matches!(self, Self::Ec2 | Self::Ec2MultiRegion)
    }

    fn url(self) -> &'static str {
        match self {
            Self::Ec2 | Self::Ec2MultiRegion => "http://169.254.169.254",
            Self::Google => "http://metadata.google.internal",
            Self::Alibaba => "http://100.100.100.200",
        }
    }

    fn zone_path(self) -> &'static str {
        match self {
            Self::Ec2 | Self::Ec2MultiRegion => "/latest/meta-data/placement/availability-zone",
            Self::Google => "/computeMetadata/v1/instance/zone",
            Self::Alibaba => "/latest/meta-data/zone-id",
        }
    }
}

impl MetadataService {
    /// Reads the properties; without any, all is as the cloud has it.
    ///
    /// # Errors
    /// If a property makes no sense, in one line.
    pub fn new(cloud: Cloud, properties: Option<&str>) -> Result<Self, String> {
        let values = properties.map(properties::parse).unwrap_or_default();
        let text = |name: &str| values.get(name).map(|text| text.trim()).filter(|t| !t.is_empty());
        let own = if cloud.is_ec2() { text("ec2_metadata_url") } else { None };
        let url = text("metadata_url").or(own).unwrap_or(cloud.url());
        let (host, port) = authority(url).ok_or_else(|| {
            format!(
                "Snitch metadata service URL '{url}' is invalid. Please review snitch properties \
                 defined in the configured 'cassandra-rackdc.properties' configuration file."
            )
        })?;
        let timeout = match text("metadata_request_timeout") {
            None => TIMEOUT,
            Some(text) => duration(text).ok_or_else(|| {
                format!("{text} as value of metadata_request_timeout is invalid duration!")
            })?,
        };
        let token_seconds = if cloud.is_ec2() { token_seconds(&values)? } else { None };
        let scheme = text("ec2_naming_scheme").unwrap_or("standard");
        let suffix = text("dc_suffix").unwrap_or_default().to_owned();
        let legacy_names = scheme.eq_ignore_ascii_case("legacy");
        Ok(Self { cloud, host, port, timeout, token_seconds, legacy_names, suffix })
    }

    /// The request for a token, which the others carry; none, where they need none.
    pub fn token(&self) -> Option<MetadataRequest> {
        let seconds = self.token_seconds?;
        let header = ("X-aws-ec2-metadata-token-ttl-seconds", seconds.to_string());
        Some(MetadataRequest { method: "PUT", path: "/latest/api/token", headers: vec![header] })
    }

    /// The request for the zone of this machine.
    pub fn zone(&self, token: Option<&str>) -> MetadataRequest {
        self.get(self.cloud.zone_path(), token)
    }

    /// The request for its public address.
    pub fn public_address(&self, token: Option<&str>) -> MetadataRequest {
        self.get("/latest/meta-data/public-ipv4", token)
    }

    fn get(&self, path: &'static str, token: Option<&str>) -> MetadataRequest {
        let mut headers = Vec::new();
        if self.cloud == Cloud::Google {
            headers.push(("Metadata-Flavor", "Google".to_owned()));
        }
        headers.extend(token.map(|token| ("X-aws-ec2-metadata-token", token.to_owned())));
        MetadataRequest { method: "GET", path, headers }
    }

    /// Data centre and rack of a zone, as the service names it.
    ///
    /// # Errors
    /// If it is no name of a zone.
    pub fn place(&self, zone: &str) -> Result<(String, String), String> {
        let zone = zone.trim();
        let (center, rack) = match self.cloud.is_ec2() {
            true => ec2_place(zone, self.legacy_names),
            false => {
                // projects/<number>/zones/<zone>
                let zone = zone.rsplit('/').next().unwrap_or(zone);
                zone.rsplit_once('-').map(|(center, rack)| (center.to_owned(), rack.to_owned()))
            }
        }
        .filter(|(center, rack)| !center.is_empty() && !rack.is_empty())
        .ok_or_else(|| {
            format!(
                "{zone} does not contain at least one '-' to differentiate between datacenter and \
                 rack"
            )
        })?;
        Ok((format!("{center}{}", self.suffix), rack))
    }
}

/// `us-east-1a` is rack `us-east-1a` of `us-east-1`; by the legacy names, rack `1a` of `us-east`,
/// and of `us-west-2`, which is no slip (CASSANDRA-4026).
fn ec2_place(zone: &str, legacy_names: bool) -> Option<(String, String)> {
    let region = zone.trim_end_matches(|c: char| c.is_ascii_lowercase());
    if !zone.is_ascii() || !zone.contains('-') {
        return None;
    }
    if !legacy_names {
        return Some((region.to_owned(), zone.to_owned()));
    }
    let rack = zone.rsplit('-').next()?;
    let shorter = zone.get(..zone.len().checked_sub(1)?)?;
    let center = match shorter.ends_with('1') {
        true => zone.get(..zone.len().checked_sub(3)?)?,
        false => shorter,
    };
    Some((center.to_owned(), rack.to_owned()))
}

fn token_seconds(values: &BTreeMap<String, String>) -> Result<Option<u32>, String> {
    match values.get("ec2_metadata_type").map_or("v2", |text| text.trim()) {
        "v1" => return Ok(None),
        "v2" => {}
        _ => return Err("ec2_metadata_type must be one of v1, v2".to_owned()),
    }
    let name = "ec2_metadata_token_ttl_seconds";
    let Some(text) = values.get(name) else { return Ok(Some(*TOKEN_SECONDS.end())) };
    match text.trim().parse::<u32>() {
        Ok(seconds) if TOKEN_SECONDS.contains(&seconds) => Ok(Some(seconds)),
        Ok(seconds) => Err(format!(
            "property {name} was set to {seconds} seconds which is not in allowed range of \
             [{}..{}]",
            TOKEN_SECONDS.start(),
            TOKEN_SECONDS.end()
        )),
        Err(_) => {
            Err(format!("Unable to parse integer from property {name}, value to parse: {text}"))
        }
    }
}

/// Host and port of `http://host[:port]`, with or without a slash behind it.
fn authority(url: &str) -> Option<(String, u16)> {
    let rest = url.strip_prefix("http://")?.trim_end_matches('/');
    if rest.is_empty() || rest.contains(|c: char| c == '/' || c.is_whitespace() || c.is_control()) {
        return None;
    }
    match rest.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() => Some((host.to_owned(), port.parse().ok()?)),
        Some(_) => None,
        None => Some((rest.to_owned(), 80)),
    }
}

/// `500ms`, `30s`, `2m`.
fn duration(text: &str) -> Option<Duration> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at_checked(digits)?;
    let number: u32 = number.parse().ok()?;
    let unit = match unit {
        "ms" => Duration::from_millis(1),
        "s" => Duration::from_secs(1),
        "m" => Duration::from_secs(60),
        "h" => Duration::from_secs(3600),
        _ => return None,
    };
    unit.checked_mul(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cloud: Cloud, properties: &str) -> MetadataService {
        MetadataService::new(cloud, Some(properties)).unwrap()
    }

    fn place(service: &MetadataService, zone: &str) -> (String, String) {
        service.place(zone).unwrap()
    }

    fn texts(center: &str, rack: &str) -> (String, String) {
        (center.to_owned(), rack.to_owned())
    }

    /// The zones of Cassandra's own `Ec2SnitchTest` and `GoogleCloudSnitchTest`.
    #[test]
    fn zones_are_places() {
        let standard = of(Cloud::Ec2, "");
        assert_eq!(place(&standard, "us-east-1d"), texts("us-east-1", "us-east-1d"));
        assert_eq!(place(&standard, "us-west-2a\n"), texts("us-west-2", "us-west-2a"));
        let legacy = of(Cloud::Ec2, "ec2_naming_scheme=legacy");
        assert_eq!(place(&legacy, "us-east-1d"), texts("us-east", "1d"));
        assert_eq!(place(&legacy, "us-east-2d"), texts("us-east-2", "2d"));
        assert_eq!(place(&legacy, "us-west-1a"), texts("us-west", "1a"));
        let suffixed = of(Cloud::Ec2MultiRegion, "dc_suffix=_hot\n");
        assert_eq!(place(&suffixed, "eu-west-1a").0, "eu-west-1_hot");
        let google = of(Cloud::Google, "");
        let zone = "projects/4242/zones/us-central1-a";
        assert_eq!(place(&google, zone), texts("us-central1", "a"));
        let alibaba = of(Cloud::Alibaba, "dc_suffix=x");
        assert_eq!(place(&alibaba, "cn-hangzhou-f"), texts("cn-hangzhoux", "f"));
        for service in [standard, legacy, google, alibaba] {
            for bad in ["", "a", "/"] {
                assert!(service.place(bad).is_err(), "{bad}");
            }
            // bytes that are no whole characters are not cut
            for odd in ["-1", "\u{e4}1", "\u{e4}-1\u{e4}", "\u{e4}-1a"] {
                let _ = service.place(odd);
            }
        }
    }

    #[test]
    fn requests_carry_what_each_cloud_wants() {
        let service = of(Cloud::Ec2, "ec2_metadata_token_ttl_seconds=60");
        let token = service.token().unwrap();
        assert_eq!((token.method, token.path), ("PUT", "/latest/api/token"));
        let header = ("X-aws-ec2-metadata-token-ttl-seconds", "60".to_owned());
        assert_eq!(token.headers, [header]);
        let zone = service.zone(Some("t"));
        assert_eq!(zone.headers, [("X-aws-ec2-metadata-token", "t".to_owned())]);
        assert_eq!(of(Cloud::Ec2, "ec2_metadata_type=v1").token(), None);
        let google = of(Cloud::Google, "");
        assert_eq!(google.token(), None);
        assert_eq!(google.zone(None).headers, [("Metadata-Flavor", "Google".to_owned())]);
    }

    #[test]
    fn properties_say_where_and_how_long() {
        let service = of(Cloud::Ec2, "");
        assert_eq!((service.host.as_str(), service.port), ("169.254.169.254", 80));
        assert_eq!(service.timeout, TIMEOUT);
        let text = "ec2_metadata_url=http://127.0.0.1:8080/\nmetadata_request_timeout=500ms";
        let service = of(Cloud::Ec2, text);
        assert_eq!((service.host.as_str(), service.port), ("127.0.0.1", 8080));
        assert_eq!(service.timeout, Duration::from_millis(500));
        for bad in [
            "metadata_url=ftp://x",
            "metadata_url=http://x:port",
            "metadata_url=http://x/\u{1}y",
            "metadata_request_timeout=soon",
            "ec2_metadata_type=v3",
            "ec2_metadata_token_ttl_seconds=29",
            "ec2_metadata_token_ttl_seconds=x",
        ] {
            assert!(MetadataService::new(Cloud::Ec2, Some(bad)).is_err(), "{bad}");
        }
    }
}
