// SPDX-License-Identifier: Apache-2.0

package import BatonProtocol

extension FormerNames: Codable {
    /// Reads stored names, and skips those that no device can have.
    package init(from decoder: any Decoder) throws {
        self.init()
        for name in try [String](from: decoder) where (try? DeviceName.validated(name)) == name { add(name) }
    }

    package func encode(to encoder: any Encoder) throws { try names.encode(to: encoder) }
}
